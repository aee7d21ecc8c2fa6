package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var untrustedServingCertificate = scenario.Scenario{
	Name: "untrusted-serving-certificate",
	Happens: "Only the first server runs TO. It is restarted with a serving certificate of an authority that no server trusts, and then " +
		"with a valid one.",
	Holds: "While the others cannot trust it, they answer 503, never 404, for resources that only it serves. With the valid " +
		"certificate everything is right again.",
	Source: "KEP-4020, proxy transport between apiservers and authn: --peer-ca-file verifies peers' serving certificates; goals: 503, not " +
		"404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	Limits:  notOnNodes,
	Control: outOfReach,
	Plan:    misconfigured("a", scenario.Setup{Serving: scenario.CertificateStranger}, 50),
}
