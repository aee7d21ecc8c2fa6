package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var namespaceDeletionDuringPartition = scenario.Scenario{
	Name: "namespace-deletion-during-partition",
	Happens: "Only the first server runs TO. The controllers are clients of the second, which cannot reach the first. The third is " +
		"restarted, and a namespace is deleted that contains an object whose kind only the first server serves.",
	Holds:      "The namespace stays until the first server can be reached again. Then it goes, and nothing of it is left in etcd.",
	Source:     "KEP-4020, goals: 503 and not 404 if the server that could answer cannot be reached",
	About:      []string{"NothingLeftBehind", "NoWrongfulDeletion", "DeletionEnds"},
	MinServers: 3,
	Limits:     withControllers,
	Control:    scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NothingLeftBehind"}},
	Plan:       controlled(emptying.during(partition)),
}

// emptying lets controllers delete a namespace and its contents.
var emptying = task{
	prepare: createForControllers(5 * time.Second),
	act: func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.DeleteNamespace(collected)
	},
	finish: collect,
}
