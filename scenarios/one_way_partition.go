package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var oneWayPartition = scenario.Scenario{
	Name: "one-way-partition",
	Happens: "Only the first server runs TO. For a while, the second server cannot connect to the first, but the first can connect " +
		"to the second.",
	Holds: "Meanwhile the second server answers 503, never 404, for resources that only the first serves. Soon afterwards " +
		"everything is right again. Beyond the KEP: the first server continues to pass requests on to the second, and none " +
		"of them fails.",
	Source:  "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "Available"},
	Labels:  []string{"conformance"},
	Control: outOfReach,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(cut("b", "a"))
		plan.Soak(20 * time.Second)
		heal()
		plan.Converge()
	}),
}
