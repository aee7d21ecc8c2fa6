package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var servingCertificateForAnotherName = scenario.Scenario{
	Name: "serving-certificate-for-another-name",
	Happens: "The first server alone runs TO. It is restarted with a serving certificate of the right authority for another name, " +
		"and then with a good one.",
	Holds: "If it starts at all, the others answer 503, and never 404, for what it alone serves, as long as they cannot trust it; nobody crashes; " +
		"all is well with the good one.",
	Source: "KEP-4020, proxy transport between apiservers and authn: serving certificates are verified; k8s.io/kubernetes, pkg/controlplane/apiserver/peer.go: peers are dialled as " +
		"kubernetes.default.svc; KEP-4020, goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("a", scenario.Setup{Serving: scenario.CertificateOther})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300}
		return *plan
	},
}
