package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var expiredServingCertificate = scenario.Scenario{
	Name:    "expired-serving-certificate",
	Happens: "Only the first server runs TO. It is restarted with an expired serving certificate, and then with a valid one.",
	Holds: "If it starts at all, the others answer 503, never 404, for resources that only it serves while they cannot trust " +
		"it. No server crashes. With the valid certificate everything is right again.",
	Source:  "KEP-4020, proxy transport between apiservers and authn: peers verify each other's serving certificates; goals: 503, not 404",
	About:   []string{"NoFalseNotFound", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	Limits:  notOnNodes,
	Control: mixedToTheEnd,
	Plan:    misconfigured("a", scenario.Setup{Serving: scenario.CertificateExpired}, 0),
}
