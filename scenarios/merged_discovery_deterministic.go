package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var mergedDiscoveryDeterministic = scenario.Scenario{
	Name: "merged-discovery-deterministic",
	Happens: "The first server runs TO, the others FROM, and there is a custom resource. The first three servers are stopped and started " +
		"again, in each of the six orders.",
	Holds:      "Whichever server started first, all servers answer discovery with the same bytes and the same ETag.",
	Source:     "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked",
	About:      []string{"DiscoveryDeterministic", "DiscoveryComplete", "NoFalseNotFound", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance", "slow"},
	Control:    mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 3000, Skewed: 300, MergedDocuments: 400}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(3 * time.Second)
		plan.Define(widgets("v1")) // servers list its group at different places, see finding 7
		plan.Settle(time.Second)
		for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
			for _, server := range order {
				plan.Stop(server)
			}
			for _, server := range order {
				plan.Start(server)
			}
			plan.Settle(4 * time.Second)
		}
		plan.Converge()
	}),
}
