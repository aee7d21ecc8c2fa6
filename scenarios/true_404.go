package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var trueNotFound = scenario.Scenario{
	Name: "true-404",
	Happens: "Only the first server runs TO. Clients ask for resources that no server serves: invented groups, versions, " +
		"resources and subresources beside real ones, and a custom resource before it is defined and after it was deleted. " +
		"In between, the link between two servers is cut, and a server is restarted.",
	Holds: "A request for a resource that no server serves is answered 404, or 503 while a server cannot know this yet.",
	Source: "KEP-4020, design details, aggregation layer: a request for which there is no eligible peer is handled locally, and 404 if " +
		"the resource does not exist",
	About:      []string{"TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Control:    scenario.Control{Defect: "absence-becomes-refusal", Invariants: []string{"TrueNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 500}, func(plan *scenario.Plan, _ scenario.Parameters) {
		gizmos := &scenario.Definition{Group: "absent.skewproof.dev", Resource: "gizmos", Versions: []string{"v1"}}
		plan.Settle(2 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Define, Definition: gizmos})
		plan.Settle(2 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Undefine, Definition: gizmos})
		plan.Settle(5 * time.Second)
		heal := plan.Suffer(cut("b", "a"))
		plan.Settle(2 * time.Second)
		heal()
		plan.Restart("c")
		plan.Settle(5 * time.Second)
		plan.Converge()
	}),
}
