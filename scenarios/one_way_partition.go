package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var oneWayPartition = scenario.Scenario{
	Name:             "one-way-partition",
	Happens:          "The first server alone runs TO. The second cannot connect to it for a while, though it can connect to the second.",
	Holds:            "Meanwhile the second answers 503, and never 404, for what only the first serves; all is well soon after. Beyond the KEP: the first goes on passing requests on to it, and none of them fails.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(cut("b", "a"))
		plan.Soak(20 * time.Second)
		heal()
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 300, Unreachable: 100}
		return *plan
	},
}
