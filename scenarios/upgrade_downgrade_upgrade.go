package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var upgradeDowngradeUpgrade = Scenario{
	Name:    "upgrade-downgrade-upgrade",
	Happens: "The servers are all upgraded, one by one, then all downgraded, then all upgraded again.",
	Holds:   "The second upgrade goes as the first did: what some server serves can be had from every server, and nobody takes a server for what it was before.",
	Source:  "KEP-4020, rollout and upgrade planning: the upgrade→downgrade→upgrade path is tested",
	About: []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"NoCrash", "Converges"},
	MinServers: 2,
	Family:     Upgrades,
	Labels:     []string{"conformance", "slow"},
	Control:    mixedForAWhile,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(func(int) string { return p.From })
		plan.soak(3 * time.Second)
		for _, version := range []string{p.To, p.From, p.To} {
			for _, server := range plan.names() {
				plan.replace(server, version)
				plan.settle(2 * time.Second)
			}
		}
		plan.sweep()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Unserved: 100}
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
		return *plan
	},
}
