package search

import (
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// plan is the state of the control plane after the steps so far, while a case is being made.
type plan struct {
	rolling bool // servers are replaced one after the other
	last    bool // and the last of them first
	// discovers is true when discovery is asked for as well.
	discovers bool
	newer     []bool
	state     []processState
	spoiled   [][2]bool // by server: its discovery documents fail
	on        []int     // faults, by index of their label
	defined   []bool    // by index of the definition

	after []bool // newer after every step, one row for each, the first before any
	first int    // the step that disturbs first; what was before it is quiet
	heals int    // the step from which on all is healed
	ends  int    // the step after which all must be right
}

// processState is the state of a process after the steps.
type processState uint8

const (
	isRunning processState = iota
	isPaused
	isKilled
	isStopped
)

func (s processState) ended() bool { return s >= isKilled }

func (p *plan) reset(servers int) {
	*p = plan{
		newer: resized(p.newer, servers), state: resized(p.state, servers), spoiled: resized(p.spoiled, servers), on: p.on[:0],
		defined: resized(p.defined, len(definitions)), after: p.after[:0],
	}
}

// resized returns n zeros, in the memory of s if there is enough.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// remember notes the versions after the step that was added last.
func (p *plan) remember() { p.after = append(p.after, p.newer...) }

// newerAfter reports whether a server is of the newer version after a step.
func (p *plan) newerAfter(step, server int) bool { return p.after[step*len(p.newer)+server] }

// maxFaults bounds the faults of a case.
const maxFaults = 64

// faultArena holds the faults of a case, to which its steps point.
type faultArena struct {
	used int
	all  [maxFaults]fault.Fault
}

func (a *faultArena) reset() { a.used = 0 }

// labels are the names of faults, by their index.
var labels = func() (all [maxFaults]string) {
	for i := range all {
		all[i] = "f" + digits(i+1)
	}
	return all
}()

// digits writes a number below 100.
func digits(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return string(rune('0'+n/10)) + string(rune('0'+n%10))
}

// inject switches a fault on.
func (g *Generator) inject(f fault.Fault) {
	if g.faults.used == maxFaults {
		return
	}
	i := g.faults.used
	g.faults.used++
	g.faults.all[i] = f
	g.plan.on = append(g.plan.on, i)
	g.add(scenario.Step{Action: scenario.Inject, Label: labels[i], Fault: &g.faults.all[i]})
}

// heal switches off the n-th of those that are on.
func (g *Generator) heal(n int) {
	i := g.plan.on[n]
	g.plan.on = append(g.plan.on[:n], g.plan.on[n+1:]...)
	g.add(scenario.Step{Action: scenario.Heal, Label: labels[i]})
}

// definitions are the custom resources and aggregated APIs that cases define. The second is the first with other versions.
var definitions = [...]scenario.Definition{
	{Group: "stable.example.com", Resource: "widgets", Versions: []string{"v1"}},
	{Group: "stable.example.com", Resource: "widgets", Versions: []string{"v1", "v2"}},
	{Group: "stable.example.com", Resource: "gadgets", Versions: []string{"v1"}},
	{Group: "metrics.example.com", Resource: "gauges", Versions: []string{"v1beta1"}, Aggregated: true},
}

// define creates or deletes a definition, or gives it other versions.
func (g *Generator) define(i int) {
	action := scenario.Define
	if g.plan.defined[i] {
		action = scenario.Undefine
	}
	for j := range definitions { // one resource has one definition
		if definitions[j].Group == definitions[i].Group && definitions[j].Resource == definitions[i].Resource {
			g.plan.defined[j] = false
		}
	}
	g.plan.defined[i] = action == scenario.Define
	g.add(scenario.Step{Action: action, Definition: &definitions[i]})
}
