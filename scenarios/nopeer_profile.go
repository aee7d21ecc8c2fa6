package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var nopeerProfile = scenario.Scenario{
	Name: "nopeer-profile",
	Happens: "The first server runs TO, the others FROM, and a custom resource is defined and deleted, unless the run must not change " +
		"anything. Clients ask for the merged documents and, with profile=nopeer, for what each server serves itself.",
	Holds:   "With the profile a server lists exactly what it serves itself. Without it, it lists what all servers serve.",
	Source:  "KEP-4020, design details: the nopeer profile of aggregated discovery is the local server's view",
	About:   []string{"NoPeerIsLocal", "DiscoveryComplete", "DiscoveryDeterministic"},
	Labels:  []string{"conformance"},
	Control: scenario.Control{Defect: "own-view-of-all", Invariants: []string{"NoPeerIsLocal"}},
	Plan: planned(firstTo, pressure{Operations: 1000, Skewed: 100, MergedDocuments: 45, OwnDocuments: 10},
		func(plan *scenario.Plan, p scenario.Parameters) {
			plan.Traffic = scenario.DiscoveryTraffic
			plan.Settle(6 * time.Second)
			if !p.ReadOnly {
				plan.Define(widgets("v1"))
			}
			plan.Settle(6 * time.Second)
			if !p.ReadOnly {
				plan.Undefine(widgets("v1"))
			}
			plan.Converge()
		}),
}
