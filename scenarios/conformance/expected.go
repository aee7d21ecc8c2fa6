package conformance

import (
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

// What a run on real processes spends on anything but its plan's own waiting, on a machine that keeps up.
const (
	aroundIt  = 12 * time.Second // sandbox, etcd, servers, judging and reports
	forAStart = 8 * time.Second
	forASweep = 4 * time.Second
)

// Expected says in a line what is to be run, and about how long that takes on real processes, for who asks for it. Validate first.
func (o *Options) Expected() string {
	var all []scenario.Scenario
	for _, s := range o.chosen() {
		plan := s.Plan(o.parameters(s))
		if s.Limits.Allows(o.Backend) && (o.Backend != scenario.BackendExisting || plan.OnlyReads() == nil) {
			all = append(all, s)
		}
	}
	controls, _ := o.controls()
	said := fmt.Sprintf("scenarios: %d, control runs: %d", len(all), len(controls))
	if len(controls) == 0 {
		said += " (so the result will be inconclusive: choose one more scenario that has a control, such as quiet)"
	}
	if o.Backend == scenario.BackendSim {
		return said
	}
	var takes time.Duration
	for _, s := range all {
		takes += duration(s.Plan(o.parameters(s)))
	}
	for _, c := range controls {
		if c.backend != scenario.BackendSim {
			takes += duration(c.Plan(o.parameters(c.Scenario)))
		}
	}
	atOnce := max(1, o.Parallel)
	said += fmt.Sprintf(", about %d min", int((takes / time.Duration(atOnce)).Round(time.Minute).Minutes()))
	if atOnce > 1 {
		said += fmt.Sprintf(" with %d at a time, if the machine keeps up", atOnce)
	}
	return said
}

// duration is about how long a run of the plan takes.
func duration(plan scenario.Plan) time.Duration {
	takes := aroundIt
	for _, s := range plan.Steps {
		takes += s.For
		switch s.Action {
		case scenario.Start, scenario.Restart, scenario.Replace:
			takes += forAStart
		case scenario.Sweep:
			takes += forASweep
		}
	}
	return takes
}

// Patience is how long a run of the plan may take at the most. Servers are ready within seconds, but on a loaded machine not always.
func Patience(plan scenario.Plan) time.Duration {
	limit := 5 * time.Minute
	for _, s := range plan.Steps {
		limit += 2 * s.For
		switch s.Action {
		case scenario.Start, scenario.Stop, scenario.Restart, scenario.Replace, scenario.Sweep:
			limit += 20 * time.Second
		}
	}
	return limit
}
