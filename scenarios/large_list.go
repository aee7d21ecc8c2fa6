package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var largeList = scenario.Scenario{
	Name: "large-list",
	Happens: "The first server runs TO, the others FROM. There are hundreds of objects of a resource that only one of them serves. Clients " +
		"list them from every server, whole and page by page.",
	Holds:   "Every list is complete, whichever server is asked and in however many pages.",
	Source:  "KEP-4020, goals: a request is handled by an apiserver that can serve it, as that one would",
	About:   []string{"ListsAgree", "NoFalseNotFound", "PassedOnUnchanged", "Converges"},
	Control: scenario.Control{Defect: "last-object-lost", Invariants: []string{"ListsAgree"}},
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400, PassedOn: 600, Lists: 40},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Traffic = scenario.LargeListTraffic
			plan.Settle(40 * time.Second)
			plan.Converge()
		}),
}
