package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var wrongPeerCA = scenario.Scenario{
	Name: "wrong-peer-ca",
	Happens: "Only the first server runs TO. The second is restarted with a --peer-ca-file that has signed no server's certificate, and " +
		"then with the right one.",
	Holds: "Meanwhile the second server answers 503, never 404, for resources that only the first serves. With the right file " +
		"everything is right again. Beyond the KEP: the other servers are not affected.",
	Source: "KEP-4020, proxy transport between apiservers and authn: --peer-ca-file verifies peers' serving certificates; goals: 503, not " +
		"404",
	About: []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges",
		"Available"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Limits:     notOnNodes,
	Control:    outOfReach,
	Plan:       misconfigured("b", scenario.Setup{PeerCA: scenario.TrustStranger}, 50),
}
