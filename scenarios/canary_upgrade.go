package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var canaryUpgrade = Scenario{
	Name:    "canary-upgrade",
	Happens: "One server is upgraded and watched for longer than leases and the first retries take; then the others follow.",
	Holds:   "While one server runs ahead, and while the others catch up, what some server serves can be had from every server.",
	Source:  "KEP-4020, motivation: a cluster may run mixed versions for as long as an upgrade is being watched",
	About: []string{"NoFalseNotFound", "TrueNotFound", "ProxiedSucceed", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"DiscoveryAccessible", "NoCrash", "Converges"},
	MinServers: 2,
	Family:     Upgrades,
	Labels:     []string{"conformance"},
	Control:    mixedForAWhile,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(func(int) string { return p.From })
		plan.soak(3 * time.Second)
		for i, server := range plan.names() {
			plan.replace(server, p.To)
			if i == 0 {
				plan.settle(35 * time.Second)
				plan.sweep()
				continue
			}
			plan.settle(2 * time.Second)
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Unserved: 100}
		if p.Mixed() {
			plan.Pressure.Skewed = 500
		}
		return *plan
	},
}
