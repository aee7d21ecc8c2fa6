package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var watchThroughProxy = scenario.Scenario{
	Name: "watch-through-proxy",
	Happens: "The first server runs TO, the others FROM. Most requests are watches, of one second to ten, many of them passed on. In the middle " +
		"of it the server that they are passed on to is restarted, unless nothing may be harmed.",
	Holds: "Watches of what only another server serves are established, last as they were asked to and bring the events of what is created meanwhile; " +
		"those that the restart breaks can be begun anew.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it; controllers live by watches",
	About:            []string{"NoFalseNotFound", "WatchesLast", "NoLoop", "PassedOnUnchanged", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Traffic = scenario.WatchTraffic
		plan.Settle(20 * time.Second)
		if p.ReadOnly {
			plan.Soak(15 * time.Second) // other people's servers are asked less often, and for enough it takes longer
		} else {
			plan.Restart("a")
		}
		plan.Settle(10 * time.Second)
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 2500, Skewed: 400}
		return *plan
	},
}
