package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var peerPartition = scenario.Scenario{
	Name: "peer-partition",
	Happens: "Only the first server runs TO. The network between it and the second server is cut in both directions for a while, then " +
		"healed.",
	Holds: "Meanwhile the second server answers 503, never 404, for resources that only the first serves. Soon afterwards " +
		"everything is right again. Beyond the KEP: the other servers are not affected.",
	Source:  "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "Available"},
	Labels:  []string{"conformance"},
	Control: outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Inject("a to b", cut("a", "b"))
		plan.Soak(20 * time.Second)
		plan.Heal("b to a")
		plan.Heal("a to b")
		plan.Converge()
	}),
}
