package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var startupDuringPartition = scenario.Scenario{
	Name:             "startup-during-partition",
	Happens:          "The first server alone runs TO. While the second cannot reach it, the second is restarted and has to learn everything anew.",
	Holds:            "What the second server could not learn it does not take for absent: it answers 503, not 404, for what only the first serves.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Restart("b")
		// The network is whole again when no retry is due (see restart-during-partition): 20 s after b began to ask comes one, and the next after 41 s.
		plan.Soak(24 * time.Second)
		plan.Heal("b to a")
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
