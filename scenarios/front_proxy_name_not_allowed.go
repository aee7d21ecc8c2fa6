package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var frontProxyNameNotAllowed = scenario.Scenario{
	Name: "front-proxy-name-not-allowed",
	Happens: "Only the first server runs TO. The second is restarted with a front-proxy certificate for a name that no other server " +
		"allows, and then with the right one.",
	Holds: "Meanwhile its peers reject the second server, and it answers 503, never 404, for resources that only the first " +
		"serves. With the right certificate everything is right again. Beyond the KEP: the other servers are not affected.",
	Source: "KEP-4020, proxy transport between apiservers and authn: peers prove who they are by the front-proxy certificate " +
		"(--requestheader-allowed-names); goals: 503, not 404",
	About: []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "IdentityPreserved", "NoLoop", "NoCrash",
		"Converges", "Available"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Limits:     notOnNodes,
	Control:    outOfReach,
	Plan:       misconfigured("b", scenario.Setup{FrontProxy: scenario.CertificateOther}, 50),
}
