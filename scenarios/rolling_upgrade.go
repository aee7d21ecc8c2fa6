package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var rollingUpgrade = scenario.Scenario{
	Name:    "rolling-upgrade",
	Happens: "Under load, the servers are replaced one after the other by a newer version. Each keeps its address and identity.",
	Holds:   "All the time, every server can answer requests for everything that some server serves, and all answer discovery alike.",
	Source:  "KEP-4020, motivation: garbage collection and namespace deletion misled by 404s during an upgrade",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	Labels:  []string{"smoke", "conformance"},
	Control: mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 5000, Unserved: 100, MergedDocuments: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Nodes = aFewNodes
		plan.Soak(3 * time.Second)
		for i, s := range plan.Servers {
			plan.Replace(s.Name, p.To)
			plan.Settle(4 * time.Second)
			if i == 0 {
				plan.Sweep() // while the versions are mixed
			}
		}
		plan.Sweep()
		plan.Converge()
		if p.Mixed() {
			plan.Pressure.Skewed = 300
		}
	}),
}
