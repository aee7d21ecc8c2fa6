package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// changesOfADay is how many rounds of changes there are, one every ten minutes.
const changesOfADay = 24

var longCampaign = Scenario{
	Name: "long-campaign",
	Happens: "For hours, something is done to a control plane of mixed versions every few minutes: a server is restarted, killed and started, cut off from " +
		"another or from etcd, and custom resources come and go.",
	Holds:            "Nothing wears out: what held in the first minute holds after hours, and all is well in the end.",
	Source:           "KEP-4020, goals and service level objectives; leases that last an hour, and fetches that are repeated, show only after hours",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           Scale,
	Limits:           Limits{Backends: onlySimulated, Reason: "because it lasts for hours"},
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.Traffic = SparseTraffic
		plan.settle(time.Minute)
		for i := range changesOfADay {
			server := plan.Servers[i%len(plan.Servers)].Name
			other := plan.Servers[(i+1)%len(plan.Servers)].Name
			switch i % 6 {
			case 0:
				plan.restart(server)
			case 1:
				plan.define(widgets("v1"))
			case 2:
				plan.add(Step{Action: Kill, Server: server})
				plan.soak(time.Minute)
				plan.add(Step{Action: Start, Server: server})
			case 3:
				plan.inject("servers", cut(other, server))
				plan.soak(2 * time.Minute)
				plan.heal("servers")
			case 4:
				plan.undefine(widgets("v1"))
			case 5:
				plan.inject("etcd", cut(server, "etcd"))
				plan.soak(2 * time.Minute)
				plan.heal("etcd")
			}
			plan.soak(9 * time.Minute)
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unserved: 100}
		return *plan
	},
}
