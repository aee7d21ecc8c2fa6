package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var canaryUpgrade = scenario.Scenario{
	Name:    "canary-upgrade",
	Happens: "One server is upgraded and runs for longer than leases last and first retries take. Then the others are upgraded.",
	Holds:   "All the time, every server can answer requests for everything that some server serves.",
	Source:  "KEP-4020, motivation: a cluster may run mixed versions for as long as an upgrade is being watched",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 4000, Unserved: 100, MergedDocuments: 150}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Soak(3 * time.Second)
		for i, server := range plan.Names() {
			plan.Replace(server, p.To)
			if i == 0 {
				plan.Settle(35 * time.Second)
				plan.Sweep()
				continue
			}
			plan.Settle(2 * time.Second)
		}
		plan.Converge()
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
	}),
}
