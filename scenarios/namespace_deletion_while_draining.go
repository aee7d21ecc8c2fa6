package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var namespaceDeletionWhileDraining = scenario.Scenario{
	Name: "namespace-deletion-while-draining",
	Happens: "Only the first server runs TO. The controllers are clients of the second. A namespace is deleted that contains an object whose " +
		"kind only the first server serves. At once, the first server is told to stop: it serves on for 12 s. The namespace controller begins " +
		"five seconds after the deletion, so in this time.",
	Holds:   "The namespace goes, and nothing of it is left in etcd, at the latest when the first server is back.",
	Source:  "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists",
	About:   []string{"NothingLeftBehind", "NoWrongfulDeletion", "DeletionEnds"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NothingLeftBehind"}},
	Plan:    controlled(emptying.during(drained)),
}

// drained stops the first server with a shutdown delay, in which the work that has begun goes on.
func drained(plan *scenario.Plan, meanwhile func()) {
	plan.Servers[0].Setup = &scenario.Setup{ShutdownDelay: shutdownDelay, WatchTermination: 3 * time.Second}
	meanwhile()
	plan.Restart("a")
}
