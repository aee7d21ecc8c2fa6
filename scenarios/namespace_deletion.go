package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var namespaceDeletion = scenario.Scenario{
	Name: "namespace-deletion",
	Happens: "Only the first server runs TO. The controllers are clients of the second. A namespace is deleted that contains an " +
		"object whose kind only the first server serves. This object and another one have a finalizer, which is removed later.",
	Holds:   "The namespace stays while the finalizers are there. Then it goes, and nothing of it is left in etcd.",
	Source:  "KEP-4020, motivation: a namespace that is deleted leaves behind what discovery does not list",
	About:   []string{"NothingLeftBehind", "NoWrongfulDeletion", "DeletionEnds"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NothingLeftBehind"}},
	Plan: controlled(func(plan *scenario.Plan, p scenario.Parameters) {
		plan.StartControllers(p.From, "b")
		plan.Soak(10 * time.Second)
		held := collected
		held.Held = true
		plan.CreateObjects(held)
		plan.Soak(5 * time.Second)
		plan.DeleteNamespace(held)
		plan.Soak(15 * time.Second)
		plan.ReleaseObjects(held)
		plan.Collect()
	}),
}
