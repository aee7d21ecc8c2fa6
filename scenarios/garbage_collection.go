package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var garbageCollection = scenario.Scenario{
	Name: "garbage-collection",
	Happens: "Only the first server runs TO. The controllers are clients of the second. Owners of kinds that only the first serves, and of " +
		"one that all serve, get dependents. The controllers are started anew. Then the owners are deleted.",
	Holds:            "The garbage collector deletes no dependent of an owner that lives, and all dependents of owners that are gone.",
	Source:           "KEP-4020, motivation: garbage collection that is misled by a 404 deletes what it must not",
	About:            []string{"NoWrongfulDeletion", "OrphansCollected"}, // no deletion takes time: objects are deleted in the background
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Controllers,
	Limits:           withControllers,
	Control:          scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"OrphansCollected"}},
	Plan: controlled(func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartControllers(p.From, "b")
		plan.Soak(10 * time.Second)
		plan.CreateObjects(collected)
		plan.Soak(10 * time.Second)
		plan.StartControllers(p.From, "b")
		plan.Soak(20 * time.Second)
		plan.DeleteOwners(collected, scenario.Background)
		plan.Collect()
	}),
}
