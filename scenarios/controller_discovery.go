package scenarios

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var controllerDiscovery = scenario.Scenario{
	Name: "controller-discovery",
	Happens: "The first server is upgraded, downgraded and upgraded again, while the same controllers run as clients of the last one, which " +
		"stays FROM. Whenever the kinds of TO have appeared, owners of these kinds get dependents, a ResourceQuota counts them, and the " +
		"owners are deleted.",
	Holds: "The controllers follow discovery without a restart: each time they collect the dependents of the deleted owners, and no others, " +
		"and the quota says how many objects there are.",
	Source:  "KEP-4020, goals: discovery reports the same resources whichever server is asked; upgrade / downgrade strategy",
	About:   []string{"OrphansCollected", "NoWrongfulDeletion", "QuotaFollows"},
	Labels:  []string{"slow"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"OrphansCollected", "QuotaFollows"}},
	Plan: planned(noneTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		first, last := plan.Servers[0].Name, plan.Servers[len(plan.Servers)-1].Name
		plan.StartControllers(p.From, last)
		plan.Settle(2 * time.Second)
		for i := range 2 {
			if i > 0 {
				plan.Replace(first, p.From)
				plan.Soak(collectorLooks)
			}
			plan.Replace(first, p.To)
			plan.Soak(collectorLooks)
			appeared := scenario.Objects{Name: fmt.Sprintf("appeared-%d", i), Dependents: 3}
			plan.CreateObjects(appeared)
			plan.Soak(countersLag)
			plan.CreateQuota(appeared)
			plan.Soak(10 * time.Second)
			plan.DeleteOwners(appeared, scenario.Background)
			plan.Soak(15 * time.Second)
		}
		plan.Collect()
		plan.OutlastCollection()
	}),
}
