package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var wrongPeerCA = scenario.Scenario{
	Name:             "wrong-peer-ca",
	Happens:          "The first server alone runs TO. The second is restarted trusting an authority that has signed nobody's certificate; then it is put right.",
	Holds:            "Meanwhile the second server answers 503, and never 404, for what only the first serves; all is well once it is put right. Beyond the KEP: the others notice nothing.",
	Source:           "KEP-4020, proxy transport between apiservers and authn: --peer-ca-file verifies peers' serving certificates; goals: 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "OnlyTrustedPeers", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Labels:           []string{"conformance"},
	Limits:           notOnNodes,
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("b", scenario.Setup{PeerCA: scenario.TrustStranger})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
