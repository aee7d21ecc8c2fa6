package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var longCampaign = scenario.Scenario{
	Name: "long-campaign",
	Happens: "For hours, there is a disturbance of a control plane with mixed versions every few minutes: a server is restarted, killed " +
		"and started, or cut off from another one or from etcd, and custom resources are defined and deleted.",
	Holds:  "Nothing degrades over time: what holds in the first minute holds after hours, and at the end everything is right.",
	Source: "KEP-4020, goals and service level objectives; leases that last an hour, and fetches that are repeated, show only after hours",
	About: []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash",
		"Converges"},
	MinServers: 3,
	Limits:     scenario.Limits{Backends: onlySimulated, Reason: "because it lasts for hours"},
	Control:    mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unserved: 100, PassedOn: 800, MergedDocuments: 200},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Traffic = scenario.SparseTraffic
			plan.Settle(time.Minute)
			for i := range changesOfADay {
				server := plan.Servers[i%len(plan.Servers)].Name
				other := plan.Servers[(i+1)%len(plan.Servers)].Name
				switch i % 6 {
				case 0:
					plan.Restart(server)
				case 1:
					plan.Define(widgets("v1"))
				case 2:
					plan.Kill(server)
					plan.Soak(time.Minute)
					plan.Start(server)
				case 3:
					plan.Inject("servers", cut(other, server))
					plan.Soak(2 * time.Minute)
					plan.Heal("servers")
				case 4:
					plan.Undefine(widgets("v1"))
				case 5:
					plan.Inject("etcd", cut(server, "etcd"))
					plan.Soak(2 * time.Minute)
					plan.Heal("etcd")
				}
				plan.Soak(9 * time.Minute)
			}
			plan.Converge()
		}),
}

// changesOfADay is the number of disturbances, one every ten minutes.
const changesOfADay = 24
