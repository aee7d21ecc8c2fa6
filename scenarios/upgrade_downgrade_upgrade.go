package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var upgradeDowngradeUpgrade = scenario.Scenario{
	Name:    "upgrade-downgrade-upgrade",
	Happens: "All servers are upgraded, one by one, then all downgraded, then all upgraded again.",
	Holds: "The second upgrade goes like the first: every server can answer requests for everything that some server serves, and no " +
		"server is treated as if it still had its earlier version.",
	Source: "KEP-4020, rollout and upgrade planning: the upgrade→downgrade→upgrade path is tested",
	About: []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"NoCrash", "Converges"},
	Labels:  []string{"conformance", "slow"},
	Control: mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 4000, Unserved: 100, MergedDocuments: 200}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Soak(3 * time.Second)
		for _, version := range []string{p.To, p.From, p.To} {
			for _, server := range plan.Names() {
				plan.Replace(server, version)
				plan.Settle(2 * time.Second)
			}
		}
		plan.Sweep()
		plan.Converge()
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
	}),
}
