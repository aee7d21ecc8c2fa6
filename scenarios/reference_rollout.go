package scenarios

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var referenceRollout = scenario.Scenario{
	Name: "reference-rollout",
	Happens: "Only the first server runs TO, and every server has the proxy of its release. One after the other, the first one last, the " +
		"servers are replaced by servers with the reference proxy. Then they are replaced by servers of their releases again, in the same " +
		"order.",
	Holds: "A server with the reference proxy passes requests on to servers with and without it, answers 404 for resources that no " +
		"server serves, and shows in discovery what all of them serve. With the reference everywhere, discovery is complete and " +
		"the same on every server. No server crashes and no request loops.",
	Source: "KEP-4020, upgrade and downgrade strategy, for another proxy than that of the release; Goals: 404 only if no server serves it",
	About: []string{
		"NoFalseNotFound", "TrueNotFound", "Available", "DiscoveryDeterministic", "DiscoveryComplete", "NoLoop", "NoCrash",
		"ConfigurationTakesEffect",
	},
	MinServers: 3,
	Labels:     []string{"slow"},
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal, scenario.BackendSim},
		Subjects: []string{scenario.SubjectReference, scenario.SubjectNone},
		Reason:   "because only the reference replaces the proxy of a release, and the nodes of kind have one program for each version",
	},
	Control: withoutSteadyState,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100, MergedDocuments: 130},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			for i := range plan.Servers {
				plan.Servers[i].Setup = &scenario.Setup{Plain: true}
			}
			plan.Settle(0)
			order := plan.Names()
			slices.Reverse(order)
			for _, server := range order {
				plan.Restart(server)
				plan.Settle(5 * time.Second)
			}
			plan.Soak(5 * time.Second) // with the reference everywhere
			for _, server := range order {
				plan.SetUp(server, scenario.Setup{Plain: true})
				plan.Settle(5 * time.Second)
			}
		}),
}
