package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// quiet has no fault and no change. An invariant that fails here fails in every cluster of two
// versions.
var quiet = scenario.Scenario{
	Name:    "quiet",
	Happens: "The first server runs TO, the others FROM. There is no fault and no change.",
	Holds: "Every server can answer requests for everything that some server serves, answers 404 for resources that no server " +
		"serves, and lists the same; everything listed can be accessed.",
	Source: "KEP-4020, goals",
	About: []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	Labels:  []string{"smoke", "conformance"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 1000, Unserved: 50, MergedDocuments: 20}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Nodes = aFewNodes
		plan.Settle(10 * time.Second)
		plan.Sweep()
		plan.Converge()
		if p.Mixed() {
			plan.Pressure.Skewed = 200
		}
	}),
}
