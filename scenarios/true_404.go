package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var trueNotFound = Scenario{
	Name: "true-404",
	Happens: "The first server alone runs TO. Clients keep asking for what nobody serves: made-up groups, versions, resources and subresources beside real ones, " +
		"and a custom resource before it is defined, while it is, and after it was deleted; in between the way between two servers is cut, and a server restarted.",
	Holds:      "What nobody serves is 404, and 503 only while it cannot be known.",
	Source:     "KEP-4020, design details, aggregation layer: a request for which there is no eligible peer is handled locally, and 404 if the resource does not exist",
	About:      []string{"TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Family:     Safety,
	Labels:     []string{"conformance"},
	Control:    Control{Defect: "absence-becomes-refusal", Invariants: []string{"TrueNotFound"}},
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		gizmos := &Definition{Group: "absent.skewproof.dev", Resource: "gizmos", Versions: []string{"v1"}}
		plan.settle(2 * time.Second)
		plan.add(Step{Action: Define, Definition: gizmos})
		plan.settle(2 * time.Second)
		plan.add(Step{Action: Undefine, Definition: gizmos})
		plan.settle(5 * time.Second)
		heal := plan.suffer(cut("b", "a"))
		plan.settle(2 * time.Second)
		heal()
		plan.restart("c")
		plan.settle(5 * time.Second)
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Unserved: 500}
		return *plan
	},
}
