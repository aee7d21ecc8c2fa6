package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var frontProxyStranger = scenario.Scenario{
	Name: "front-proxy-stranger",
	Happens: "Only the first server runs TO. The second is restarted with a front-proxy certificate of an authority that no server trusts, " +
		"and then with the right one.",
	Holds: "If it starts at all, its peers reject the users that the second server names, and it answers 503, never 404, for " +
		"resources that only the first serves. With the right certificate everything is right again. Beyond the KEP: the " +
		"other servers are not affected.",
	Source: "KEP-4020, proxy transport between apiservers and authn: the authority of front proxies (--requestheader-client-ca-file) " +
		"vouches for peers; goals: 503, not 404",
	About:      []string{"NoFalseNotFound", "OnlyTrustedPeers", "IdentityPreserved", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers: 3,
	Limits:     notOnNodes,
	Control:    mixedToTheEnd,
	Plan:       misconfigured("b", scenario.Setup{FrontProxy: scenario.CertificateStranger}, 0),
}
