package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var rollingUpgrade = Scenario{
	Name:    "rolling-upgrade",
	Happens: "Under load, the servers are replaced one after the other by a newer version, each keeping its address and identity.",
	Holds:   "At every moment what some server serves can be had from every server, and all of them describe it alike.",
	Source:  "KEP-4020, motivation: garbage collection and namespace deletion misled by 404s during an upgrade",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     Upgrades,
	Labels:     []string{"smoke", "conformance"},
	Control:    mixedForAWhile,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(func(int) string { return p.From })
		plan.soak(3 * time.Second)
		for i, s := range plan.Servers {
			plan.replace(s.Name, p.To)
			plan.settle(4 * time.Second)
			if i == 0 {
				plan.sweep() // while the versions are mixed
			}
		}
		plan.sweep()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Unserved: 100}
		if p.Mixed() {
			plan.Pressure.Skewed = 300
		}
		return *plan
	},
}
