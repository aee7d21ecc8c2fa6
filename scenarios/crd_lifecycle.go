package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var crdLifecycle = scenario.Scenario{
	Name:    "crd-lifecycle",
	Happens: "Versions are mixed. A custom resource is defined, gets a second version, loses the first, and is deleted.",
	Holds:   "Every server serves and lists exactly the versions that exist.",
	Source:  "KEP-4020, goals: discovery reports the same set of resources whichever apiserver is asked; no stale entry, no false 404",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 3000, Unserved: 100, MergedDocuments: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		lifecycle(plan, widgets, 6*time.Second, 6*time.Second)
		plan.Converge()
	}),
}
