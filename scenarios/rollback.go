package scenarios

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var rollback = scenario.Scenario{
	Name:    "rollback",
	Happens: "Half of the servers are upgraded, one by one. Then they are downgraded again, the last one first.",
	Holds: "Requests for resources that no server serves any more are soon answered 404 by every server. Resources that only " +
		"the older version serves are available all the time, and nothing of the newer version remains in discovery.",
	Source: "KEP-4020, upgrade / downgrade strategy",
	About: []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "DiscoveryDeterministic", "DiscoveryComplete",
		"NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: mixedForAWhile,
	Plan: planned(noneTo, pressure{Operations: 4000, Unserved: 100, MergedDocuments: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Soak(3 * time.Second)
		upgraded := plan.Names()[:(len(plan.Servers)+1)/2]
		for _, server := range upgraded {
			plan.Replace(server, p.To)
			plan.Settle(3 * time.Second)
		}
		for _, server := range slices.Backward(upgraded) {
			plan.Replace(server, p.From)
			plan.Settle(3 * time.Second)
		}
		plan.Sweep()
		plan.Converge()
		if p.Mixed() {
			plan.Pressure.Skewed = 300
		}
	}),
}
