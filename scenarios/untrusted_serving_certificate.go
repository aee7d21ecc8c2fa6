package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var untrustedServingCertificate = scenario.Scenario{
	Name:             "untrusted-serving-certificate",
	Happens:          "The first server alone runs TO. It is restarted with a serving certificate of an authority that nobody trusts, and then with a good one.",
	Holds:            "As long as they cannot trust it, the others answer 503, and never 404, for what it alone serves; all is well with the good one.",
	Source:           "KEP-4020, proxy transport between apiservers and authn: --peer-ca-file verifies peers' serving certificates; goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("a", scenario.Setup{Serving: scenario.CertificateStranger})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
