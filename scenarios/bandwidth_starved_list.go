package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var bandwidthStarvedList = scenario.Scenario{
	Name: "bandwidth-starved-list",
	Happens: "Only the first server runs TO. Clients list many objects, and the others get its responses at only a few hundred kilobytes a " +
		"second.",
	Holds:   "A slow list that ends properly is complete. No server takes the first one for gone.",
	Source:  "KEP-4020, goals; client-go: a list is read to its end",
	About:   []string{"NoFalseNotFound", "ListsAgree", "AnsweredInFull", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 300, Unserved: 50, Lists: 30}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.LargeListTraffic
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(from(plan.Names(), fault.Fault{Kind: fault.Bandwidth, To: "a", Rate: 300_000, Direction: fault.Down})...)
		plan.Soak(25 * time.Second)
		heal()
		plan.Converge()
	}),
}
