package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var lastPeerLeaves = scenario.Scenario{
	Name:    "last-peer-leaves",
	Happens: "Only the first server runs TO. It is stopped for good.",
	Holds: "Every server answers 404 for resources that no server serves any more. For a while 503 is right as well. Discovery no " +
		"longer lists these resources.",
	Source: "KEP-4020, design details, aggregation layer: a request for which there is no eligible peer is handled locally, and 404 if " +
		"the resource does not exist",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryComplete", "NoCrash", "Converges"},
	Labels:  []string{"smoke", "conformance"},
	Control: scenario.Control{Defect: "gone-peer-kept", Invariants: []string{"TrueNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 300, Skewed: 300, MergedDocuments: 60},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Nodes = aFewNodes
			plan.Settle(10 * time.Second)
			plan.Stop("a")
			plan.Converge()
			plan.Soak(10 * time.Second)
		}),
}
