package scenarios

import "time"

// widgets is a custom resource of the given versions.
func widgets(versions ...string) Definition {
	return Definition{Group: "example.com", Resource: "widgets", Versions: versions}
}

// gauges is an aggregated API of the given versions.
func gauges(versions ...string) Definition {
	return Definition{Group: "metrics.example.com", Resource: "gauges", Versions: versions, Aggregated: true}
}

func (plan *Plan) define(d Definition)   { plan.add(Step{Action: Define, Definition: &d}) }
func (plan *Plan) undefine(d Definition) { plan.add(Step{Action: Undefine, Definition: &d}) }

// lifecycle is the life of a definition: it comes, gets another version, loses the first one, and goes. Each change is watched, one that takes
// something away for longer than the others.
func (plan *Plan) lifecycle(of func(versions ...string) Definition, watch, watchGone time.Duration) {
	plan.define(of("v1"))
	plan.settle(watch)
	plan.define(of("v1", "v2"))
	plan.settle(watch)
	plan.define(of("v2"))
	plan.settle(watchGone)
	plan.undefine(of("v2"))
	plan.settle(watchGone)
}
