package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// migrationBound is how long a migration of a resource that nobody writes may take on any cluster:
// the controller waits until the garbage collector's watch has seen a newer revision. A
// kube-apiserver sends such a bookmark once a minute (k8s.io/apiserver pkg/storage/cacher), and the
// controller doubles its wait with every attempt.
const migrationBound = 150 * time.Second

var storageVersionMigration = scenario.Scenario{
	Name: "storage-version-migration",
	Happens: "Only the first server runs TO. The controllers are clients of the second. Through it, storage version migrations are asked for: " +
		"of kinds that only the first server serves, and of one that all serve. Then the second server is restarted, and others are " +
		"asked for. The objects are updated and patched through the second server before and afterwards.",
	Holds: "Every migration succeeds, and no write loses a field.",
	Source: "KEP-4020, goals, and KEP-4192: the controller of migrations reads the list of the resource's group version, waits for the " +
		"garbage collector's informer of it, and applies each object again. It is on by default from 1.37; the run switches it on in " +
		"controllers of 1.35 and 1.36",
	About:   []string{"MigrationsSucceed", "NoFieldLost", "NoFalseNotFound"},
	Labels:  []string{"slow"},
	Limits:  withControllers,
	Control: scenario.Control{Subject: scenario.SubjectNone, Invariants: []string{"MigrationsSucceed"}},
	Plan: planned(firstTo, pressure{Operations: 1000, Skewed: 100}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Bounds.Collection = migrationBound
		plan.Settle(2 * time.Second)
		plan.StartControllers(p.From, "b")
		plan.Soak(10 * time.Second)
		migrate := func(name string) {
			o := scenario.Objects{Name: name, Dependents: 1}
			plan.CreateObjects(o)
			plan.RewriteObjects(o, "b")
			plan.MigrateObjects(o, "b")
			plan.RewriteObjects(o, "b")
			plan.Soak(2 * time.Second)
		}
		migrate("migrated")
		plan.Restart("b")
		plan.Settle(2 * time.Second)
		migrate("migrated-again")
	}),
}
