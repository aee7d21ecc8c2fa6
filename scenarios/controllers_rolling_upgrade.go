package scenarios

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var controllersRollingUpgrade = scenario.Scenario{
	Name: "controllers-rolling-upgrade",
	Happens: "Server by server, FROM is replaced by TO, while the controllers reach the servers through a load balancer. At each step with " +
		"mixed versions, owners are created and deleted, and so are three namespaces.",
	Holds: "No dependent of an owner that lives is deleted. Every object that must be deleted is deleted, and nothing is " +
		"left of the namespaces.",
	Source:     "KEP-4020, motivation: a rolling upgrade under real controllers",
	About:      []string{"NoWrongfulDeletion", "OrphansCollected", "NothingLeftBehind", "DeletionEnds"},
	MinServers: 3,
	Labels:     []string{"slow"},
	Limits:     withControllers,
	Control:    scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NothingLeftBehind"}},
	Plan: planned(noneTo, pressureOfControllers, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(2 * time.Second)
		plan.StartControllers(p.From, "")
		plan.Soak(10 * time.Second)
		for i, server := range plan.Names() {
			plan.Replace(server, p.To)
			plan.Settle(5 * time.Second)
			if i == len(plan.Servers)-1 {
				break // then all versions are equal
			}
			work := giveWork(plan, fmt.Sprintf("upgrade-%d", i), 3)
			plan.StartControllers(p.From, "")
			plan.Soak(15 * time.Second)
			work.delete(plan)
			plan.Collect()
		}
	}),
}
