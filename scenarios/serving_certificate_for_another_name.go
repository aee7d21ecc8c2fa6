package scenarios

import "github.com/skewproof/skewproof/internal/scenario"

var servingCertificateForAnotherName = scenario.Scenario{
	Name: "serving-certificate-for-another-name",
	Happens: "Only the first server runs TO. It is restarted with a serving certificate of the right authority for another name, and then " +
		"with a valid one.",
	Holds: "If it starts at all, the others answer 503, never 404, for resources that only it serves while they cannot trust " +
		"it. No server crashes. With the valid certificate everything is right again.",
	Source: "KEP-4020, proxy transport between apiservers and authn: serving certificates are verified; k8s.io/kubernetes, " +
		"pkg/controlplane/apiserver/peer.go: peers are dialled as kubernetes.default.svc; KEP-4020, goals: 503, not 404",
	About:   []string{"NoFalseNotFound", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	Limits:  notOnNodes,
	Control: mixedToTheEnd,
	Plan:    misconfigured("a", scenario.Setup{Serving: scenario.CertificateOther}, 0),
}
