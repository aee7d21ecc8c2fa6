package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var controllersCRDLifecycle = scenario.Scenario{
	Name: "controllers-crd-lifecycle",
	Happens: "Only the first server runs TO. The controllers are clients of the second. A custom resource is defined, gets a second version, " +
		"is deleted and defined again. Its objects have dependents: the first object is deleted, the second goes with the definition, and the " +
		"third is deleted after the resource came back. Owners of kinds that only the first server serves are deleted at the end.",
	Holds:   "The garbage collector deletes the dependents of each owner that is gone, and no others, whichever server serves its kind.",
	Source:  "KEP-4020, motivation: garbage collection; design details: custom resources are served by every server, and no peer is asked for them",
	About:   []string{"OrphansCollected", "NoWrongfulDeletion"},
	Labels:  []string{"slow"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"OrphansCollected"}},
	Plan: controlled(func(plan *scenario.Plan, p scenario.Parameters) {
		one, both := widgets("v1"), widgets("v1", "v2")
		custom := func(name string) scenario.Objects { return scenario.Objects{Name: name, Dependents: 3, Of: &one} }
		plan.StartControllers(p.From, "b")
		plan.Soak(10 * time.Second)
		plan.CreateObjects(collected)
		plan.Define(one)
		plan.Soak(collectorLooks)
		plan.CreateObjects(custom("deleted"))
		plan.CreateObjects(custom("with-definition"))
		plan.Define(both)
		plan.Soak(collectorLooks)
		plan.DeleteOwners(custom("deleted"), scenario.Background)
		plan.Collect()
		plan.Undefine(both)
		plan.Soak(collectorLooks)
		plan.Define(one)
		plan.Soak(collectorLooks)
		plan.CreateObjects(custom("defined-again"))
		plan.Soak(5 * time.Second)
		plan.DeleteOwners(custom("defined-again"), scenario.Background)
		plan.DeleteOwners(collected, scenario.Background)
		plan.Collect()
	}),
}
