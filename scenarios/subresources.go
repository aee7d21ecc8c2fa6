package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var subresources = scenario.Scenario{
	Name: "subresources",
	Happens: "The first server runs TO, the others FROM. Most requests are for subresources (status, scale and others): of resources that " +
		"all servers serve, of resources that only some serve, and those that only some servers have for a resource that all serve.",
	Holds:   "Every server can answer requests for a subresource that some server has.",
	Source:  "KEP-4020, goals: everything that discovery lists can be accessed",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryAccessible", "PassedOnUnchanged"},
	Labels:  []string{"conformance"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 3000, Skewed: 300, Unserved: 50, PassedOn: 200, Subresources: 20},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Traffic = scenario.SubresourceTraffic
			plan.Settle(20 * time.Second)
			plan.Sweep()
			plan.Converge()
		}),
}
