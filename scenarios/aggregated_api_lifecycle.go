package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var aggregatedAPILifecycle = scenario.Scenario{
	Name:    "aggregated-api-lifecycle",
	Happens: "Versions are mixed. An aggregated API is registered, gets a second version, loses the first, and is removed.",
	Holds: "Every server forwards requests for it to its backend itself, and lists exactly the versions that exist. The backend runs " +
		"while the API is registered. The scenario does not test a backend that is down: each server may list such an API in its own " +
		"way (503, or a stale version without resources).",
	Source: "KEP-4020, design details: aggregated APIs are served by every apiserver and need no peers",
	About:  []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	Limits: scenario.Limits{Backends: []string{scenario.BackendLocal, scenario.BackendSim},
		Reason: "because other backends do not run the backend of an aggregated API"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 3000, Unserved: 100, MergedDocuments: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		lifecycle(plan, gauges, 8*time.Second, 8*time.Second)
		plan.Converge()
	}),
}
