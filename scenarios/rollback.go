package scenarios

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var rollback = Scenario{
	Name:    "rollback",
	Happens: "Half of the servers have been upgraded, one by one, when the upgrade is given up: they go back to the older version, the last first.",
	Holds:   "What nobody serves any more is soon 404 everywhere, what only the older version serves can be had all the time, and nothing of the upgrade stays behind in discovery.",
	Source:  "KEP-4020, upgrade / downgrade strategy",
	About: []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"NoCrash", "Converges"},
	MinServers: 2,
	Family:     Upgrades,
	Labels:     []string{"conformance"},
	Control:    mixedForAWhile,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(func(int) string { return p.From })
		plan.soak(3 * time.Second)
		upgraded := plan.names()[:(p.Servers+1)/2]
		for _, server := range upgraded {
			plan.replace(server, p.To)
			plan.settle(3 * time.Second)
		}
		for _, server := range slices.Backward(upgraded) {
			plan.replace(server, p.From)
			plan.settle(3 * time.Second)
		}
		plan.sweep()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Unserved: 100}
		if p.Mixed() {
			plan.Pressure.Skewed = 300
		}
		return *plan
	},
}
