package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var discoveryConvergence = scenario.Scenario{
	Name: "discovery-convergence",
	Happens: "The served resources change several times: a custom resource is defined and deleted, a server is upgraded, another is " +
		"stopped and started, and a third is restarted. After each change nothing happens for a while.",
	Holds:      "Within seconds of each change all servers answer discovery alike. The report says after how many seconds.",
	Source:     "KEP-4020, service level objectives: what is known of peers is stale for seconds in the normal case",
	About:      []string{"DiscoveryDeterministic", "DiscoveryComplete", "NoFalseNotFound", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Control:    mixedToTheEnd,
	Plan: planned(noneTo, pressure{Operations: 3000, MergedDocuments: 250}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(2 * time.Second)
		for _, change := range []func(){
			func() { plan.Define(widgets("v1")) },
			func() { plan.Replace("a", p.To) },
			func() { plan.Stop("b") },
			func() { plan.Undefine(widgets("v1")) },
			func() { plan.Start("b") },
			func() { plan.Restart("c") },
		} {
			change()
			plan.Settle(4 * time.Second)
		}
		plan.Converge()
	}),
}
