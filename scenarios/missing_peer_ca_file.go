package scenarios

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var missingPeerCAFile = scenario.Scenario{
	Name:    "missing-peer-ca-file",
	Happens: "The first server alone runs TO. The second is restarted with the feature on and no --peer-ca-file; then it is given one.",
	Holds: "It refuses to start, or it does what the feature promises: it does not run on without a word, answering 404 for what only the first serves. " +
		"All is well once it is put right. Beyond the KEP: the others notice nothing.",
	Source:           "KEP-4020, proxy transport between apiservers and authn, 1.i: without --peer-ca-file requests fail with 503; goals: 503, not 404. Risks and mitigations 6 has discovery fall back to the local one",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Configuration,
	Limits:           notOnNodes,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Misconfigure("b", scenario.Setup{PeerCA: scenario.TrustMissing})
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300}
		return *plan
	},
}
