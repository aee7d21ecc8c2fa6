package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var foregroundDeletion = scenario.Scenario{
	Name: "foreground-deletion",
	Happens: "Only the first server runs TO. The controllers are clients of the second. Owners of kinds that only the first serves, and of " +
		"one that all serve, are deleted after their dependents (propagation Foreground).",
	Holds:   "The garbage collector deletes the dependents, and then lets the owners go.",
	Source:  "KEP-4020, motivation: the garbage collector works by what discovery lists",
	About:   []string{"DeletionEnds", "NoWrongfulDeletion"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"DeletionEnds"}},
	Plan:    controlled(collectingForeground.alone),
}

// collectingForeground lets controllers delete the dependents of owners before the owners.
var collectingForeground = task{
	prepare: createForControllers(5 * time.Second),
	act: func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.DeleteOwners(collected, scenario.Foreground)
	},
	finish: collect,
}
