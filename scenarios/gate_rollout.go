package scenarios

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var gateRollout = scenario.Scenario{
	Name: "gate-rollout",
	Happens: "Only the first server runs TO, and the feature is off on all servers. It is switched on server by server, on the first " +
		"server last, and then off again in the same order.",
	Holds: "A server with the feature on never answers 404 for resources that a live server serves, whether that one has the " +
		"feature on or off. With the feature on everywhere, discovery is complete and the same on every server. No server " +
		"crashes and no request loops.",
	Source: "KEP-4020, upgrade and downgrade strategy: the feature is enabled and disabled on one server after the other",
	About: []string{"NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoLoop", "NoCrash",
		"ConfigurationTakesEffect"},
	MinServers: 3,
	Labels:     []string{"slow"},
	Control:    withoutSteadyState,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, MergedDocuments: 130}, func(plan *scenario.Plan, _ scenario.Parameters) {
		for i := range plan.Servers {
			plan.Servers[i].Setup = &scenario.Setup{Proxy: scenario.Off}
		}
		plan.Settle(0)
		order := plan.Names()
		slices.Reverse(order)
		for _, server := range order {
			plan.Restart(server)
			plan.Settle(3 * time.Second)
		}
		plan.Soak(5 * time.Second) // with the feature on everywhere
		for _, server := range order {
			plan.SetUp(server, scenario.Setup{Proxy: scenario.Off})
			plan.Settle(3 * time.Second)
		}
	}),
}
