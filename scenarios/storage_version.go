package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var storageVersion = scenario.Scenario{
	Name: "storage-version",
	Happens: "Only the first server runs TO. Objects of kinds that only the first serves, and of one that all serve, are created through it. " +
		"They are read, updated and patched in every way through each of the others, and again after the first was restarted.",
	Holds:  "No write loses a field that it does not name: what is in etcd has every field that the object had before.",
	Source: "KEP-4020, goals: a request is handled by an apiserver that can serve it, and that knows all fields",
	About:  []string{"NoFieldLost", "NoFalseNotFound"},
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal},
		Reason:   "because only there the run reads etcd",
	},
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"NoFalseNotFound"}},
	Plan: planned(firstTo, pressureOfRewrites, rewriting.during(func(plan *scenario.Plan, _ func()) {
		plan.Restart("a")
	})),
}

var (
	pressureOfRewrites = pressure{Operations: 1000, Skewed: 100}
	rewritten          = scenario.Objects{Name: "kept", Dependents: 1}
)

// rewriting reads, updates and patches objects through each server except the first. It does this
// before, during and after the disturbance that a scenario puts around its middle part.
var rewriting = task{
	prepare: func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(2 * time.Second)
		plan.CreateObjects(rewritten)
		rewrite(plan, p)
	},
	act: rewrite,
	finish: func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(5 * time.Second)
		rewrite(plan, p)
		plan.Converge()
	},
}

func rewrite(plan *scenario.Plan, _ scenario.Parameters) {
	for _, server := range plan.Names()[1:] {
		plan.RewriteObjects(rewritten, server)
	}
	plan.Soak(5 * time.Second)
}
