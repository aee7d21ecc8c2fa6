package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var frontProxyExpired = scenario.Scenario{
	Name:    "front-proxy-expired",
	Happens: "Only the first server runs TO. The second is restarted with an expired front-proxy certificate, and then with a valid one.",
	Holds: "If it starts at all, its peers reject the users that the second server names, and it answers 503, never 404, for " +
		"resources that only the first serves. With the valid certificate everything is right again. Beyond the KEP: the " +
		"other servers are not affected.",
	Source: "KEP-4020, proxy transport between apiservers and authn: peers prove who they are by the front-proxy certificate " +
		"(--proxy-client-cert-file); goals: 503, not 404",
	About:      []string{"NoFalseNotFound", "OnlyTrustedPeers", "IdentityPreserved", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers: 3,
	Limits:     notOnNodes,
	Control:    mixedToTheEnd,
	Plan:       misconfigured("b", scenario.Setup{FrontProxy: scenario.CertificateExpired}, 0),
}
