package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var garbageCollection = scenario.Scenario{
	Name: "garbage-collection",
	Happens: "Only the first server runs TO. The controllers are clients of the second. Owners of kinds that only the first serves, and of " +
		"one that all serve, get dependents. The controllers are restarted. Then the owners are deleted.",
	Holds:  "The garbage collector deletes no dependent of an owner that lives, and all dependents of owners that are gone.",
	Source: "KEP-4020, motivation: garbage collection that is misled by a 404 deletes what it must not",
	// Not DeletionEnds: objects are deleted in the background, so no deletion takes time.
	About:   []string{"NoWrongfulDeletion", "OrphansCollected"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"OrphansCollected"}},
	Plan:    controlled(collecting.alone),
}

// collecting lets controllers collect the dependents of deleted owners, after a new start.
var collecting = task{
	prepare: createForControllers(10 * time.Second),
	act: func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartControllers(p.From, "b")
		plan.Soak(20 * time.Second)
		plan.DeleteOwners(collected, scenario.Background)
	},
	finish: collect,
}

// createForControllers starts controllers as clients of the second server and creates objects. The
// controllers can watch the objects for some time.
func createForControllers(watch time.Duration) steps {
	return func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartControllers(p.From, "b")
		plan.Soak(10 * time.Second)
		plan.CreateObjects(collected)
		plan.Soak(watch)
	}
}

// collect waits until controllers have deleted everything that they must delete, and until all
// answers must be right again.
func collect(plan *scenario.Plan, _ scenario.Parameters) {
	plan.Collect()
	plan.Converge()
}
