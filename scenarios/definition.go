package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// widgets is a custom resource of the given versions.
func widgets(versions ...string) scenario.Definition {
	return scenario.Definition{Group: "example.com", Resource: "widgets", Versions: versions}
}

// gauges is an aggregated API of the given versions.
func gauges(versions ...string) scenario.Definition {
	return scenario.Definition{Group: "metrics.example.com", Resource: "gauges", Versions: versions, Aggregated: true}
}

// lifecycle is the life of a definition: it comes, gets another version, loses the first one, and goes. Each change is watched, one that takes
// something away for longer than the others.
func lifecycle(plan *scenario.Plan, of func(versions ...string) scenario.Definition, watch, watchGone time.Duration) {
	plan.Define(of("v1"))
	plan.Settle(watch)
	plan.Define(of("v1", "v2"))
	plan.Settle(watch)
	plan.Define(of("v2"))
	plan.Settle(watchGone)
	plan.Undefine(of("v2"))
	plan.Settle(watchGone)
}
