package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var preferredVersions = scenario.Scenario{
	Name: "preferred-versions",
	Happens: "The first server runs TO, the others FROM, and there is a custom resource with two versions, unless the run must not change " +
		"anything. Clients do as kubectl does: they ask a server for discovery and use the first version of a resource that it lists.",
	Holds:   "The version that they choose works on every server.",
	Source:  "KEP-4020, goals: everything that discovery lists can be accessed",
	About:   []string{"DiscoveryAccessible", "NoFalseNotFound", "DiscoveryDeterministic", "DiscoveryComplete", "VersionOrder"},
	Labels:  []string{"conformance"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 1000, Skewed: 200, MergedDocuments: 50}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Traffic = scenario.DiscoveryTraffic
		if !p.ReadOnly { // built-in groups have several versions as well
			plan.Define(widgets("v1", "v2"))
		}
		plan.Settle(15 * time.Second)
		plan.Sweep()
		plan.Converge()
	}),
}
