package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var openAPI = scenario.Scenario{
	Name: "openapi",
	Happens: "The first server runs TO, the others FROM, and a custom resource is defined, unless the run must not change anything. " +
		"Clients ask every server for its OpenAPI descriptions, version 2 and 3.",
	Holds: "Every server answers and describes at least what it serves itself: in the document of version 2, in the index of version 3 " +
		"and, for built-in groups, in the document of each group version.",
	Source: "beyond KEP-4020, which does not change OpenAPI: kubectl and controllers validate and convert by it",
	About:  []string{"OpenAPIDescribes", "NoFalseNotFound"},
	Limits: scenario.Limits{Backends: []string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendExisting},
		Reason: "because the simulator has no OpenAPI"},
	Control: withoutSteadyState,
	Plan: planned(firstTo, pressure{Operations: 1000, Skewed: 100, Descriptions: 5}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		plan.Settle(10 * time.Second)
		if !p.ReadOnly {
			plan.Define(widgets("v1"))
		}
		plan.Settle(15 * time.Second)
		plan.Converge()
	}),
}
