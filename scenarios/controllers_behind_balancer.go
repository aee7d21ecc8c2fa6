package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var controllersBehindBalancer = scenario.Scenario{
	Name: "controllers-behind-balancer",
	Happens: "Only the first server runs TO. The controllers reach the servers through a load balancer, connection by connection, and are " +
		"started six times while dependents have owners of kinds that only the first server serves.",
	Holds:   "The garbage collector deletes no dependent of an owner that lives, whichever server each of its connections leads to.",
	Source:  "KEP-4020, motivation; kubeadm's clusters have their controllers behind a load balancer",
	About:   []string{"NoWrongfulDeletion", "OrphansCollected"},
	Labels:  []string{"slow"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NoWrongfulDeletion"}},
	Plan: controlled(func(plan *scenario.Plan, p scenario.Parameters) {
		plan.CreateObjects(collected)
		for range 6 {
			plan.StartControllers(p.From, "")
			plan.Soak(15 * time.Second)
		}
		plan.DeleteOwners(collected, scenario.Background)
		plan.Collect()
	}),
}
