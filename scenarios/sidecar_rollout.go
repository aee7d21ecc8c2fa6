package scenarios

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var sidecarRollout = scenario.Scenario{
	Name: "sidecar-rollout",
	Happens: "Only the first server runs TO, and no server has a sidecar. One after the other, the first one last, the servers are " +
		"restarted with a sidecar in front. Then they are restarted without it in the same order. Each sidecar looks for the servers " +
		"that have none.",
	Holds: "A server with a sidecar passes requests on to servers with and without one, answers 404 for resources that no " +
		"server serves, and shows in discovery what all of them serve. With sidecars everywhere, discovery is complete and " +
		"the same on every server. No server crashes and no request loops.",
	Source: "KEP-4020, upgrade and downgrade strategy, for a proxy that is not part of the kube-apiserver; Goals: 404 only if no server serves it",
	About: []string{
		"NoFalseNotFound", "TrueNotFound", "Available", "DiscoveryDeterministic", "DiscoveryComplete", "NoLoop", "NoCrash",
		"ConfigurationTakesEffect",
	},
	MinServers: 3,
	Labels:     []string{"slow"},
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal, scenario.BackendSim},
		Subjects: []string{scenario.SubjectReference, scenario.SubjectNone},
		Reason: "because only a sidecar looks for servers without one, and the servers of kind's nodes publish different ports in the " +
			"kubernetes Service",
	},
	Control: withoutSteadyState,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100, MergedDocuments: 130},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			for i := range plan.Servers {
				plan.Servers[i].Setup = &scenario.Setup{Proxy: scenario.Off}
			}
			plan.Settle(0)
			order := plan.Names()
			slices.Reverse(order)
			for _, server := range order {
				plan.SetUp(server, scenario.Setup{Direct: true})
				plan.Settle(5 * time.Second)
			}
			plan.Soak(5 * time.Second) // with sidecars everywhere
			for _, server := range order {
				plan.SetUp(server, scenario.Setup{Proxy: scenario.Off})
				plan.Settle(5 * time.Second)
			}
		}),
}
