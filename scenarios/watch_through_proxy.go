package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var watchThroughProxy = scenario.Scenario{
	Name: "watch-through-proxy",
	Happens: "The first server runs TO, the others FROM. Most requests are watches of one to ten seconds, many of them passed on. In " +
		"between, the server to which they are passed on is restarted, unless the run must not change anything.",
	Holds: "Watches of resources that only another server serves are established, last as long as they were asked to, and " +
		"deliver events of what is created meanwhile. Those that the restart breaks can be started again.",
	Source:  "KEP-4020, goals: a request is handled by an apiserver that can serve it; controllers live by watches",
	About:   []string{"NoFalseNotFound", "WatchesLast", "NoLoop", "PassedOnUnchanged", "Converges"},
	Labels:  []string{"conformance"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400, PassedOn: 250, Watches: 150},
		func(plan *scenario.Plan, p scenario.Parameters) {
			plan.Traffic = scenario.WatchTraffic
			plan.Settle(20 * time.Second)
			if p.ReadOnly {
				plan.Soak(15 * time.Second) // external servers get fewer requests, so enough of them take longer
			} else {
				plan.Restart("a")
			}
			plan.Settle(10 * time.Second)
			plan.Converge()
		}),
}
