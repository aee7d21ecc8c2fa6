package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var mergedDiscoveryDeterministic = Scenario{
	Name: "merged-discovery-deterministic",
	Happens: "The first server runs TO, the others FROM, and there is a custom resource. The first three are stopped and started again one after the other, in every " +
		"order that three servers can be started in.",
	Holds:            "Whoever came up first, all servers answer discovery with the same bytes and the same ETag.",
	Source:           "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked",
	About:            []string{"DiscoveryDeterministic", "DiscoveryComplete", "NoFalseNotFound", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           Discovery,
	Labels:           []string{"conformance", "slow"},
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.Traffic = DiscoveryTraffic
		plan.settle(3 * time.Second)
		plan.define(widgets("v1")) // servers differ in where they find its group, see docs/findings.md, 7
		plan.settle(time.Second)
		for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
			for _, server := range order {
				plan.add(Step{Action: Stop, Server: server})
			}
			for _, server := range order {
				plan.add(Step{Action: Start, Server: server})
			}
			plan.settle(4 * time.Second)
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 3000, Skewed: 300}
		return *plan
	},
}
