package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var crdWithoutPeers = scenario.Scenario{
	Name: "crd-without-peers",
	Happens: "All servers run TO. All but the first are stopped for good. Then a custom resource is defined, gets a second version, loses " +
		"the first, and is deleted.",
	Holds:   "A server without peers lists exactly what it serves.",
	Source:  "KEP-4020, goals: discovery reports what can be accessed, with peers or without; no stale entry",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryComplete", "NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: scenario.Control{Defect: "document-kept", Invariants: []string{"DiscoveryComplete"}},
	Plan: planned(allTo, pressure{Operations: 3000, Unserved: 100, MergedDocuments: 45}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		for _, name := range plan.Names()[1:] {
			plan.Stop(name)
		}
		plan.Settle(6 * time.Second)
		lifecycle(plan, widgets, 4*time.Second, 6*time.Second)
		plan.Converge()
	}),
}
