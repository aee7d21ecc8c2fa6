package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/search"
)

// settledBefore is how long, beyond the time for which ignorance is excused, a control plane is left alone before the first step.
const settledBefore = 4 * time.Second

// realPlan is a case of the simulator as a plan for real processes: the same servers and steps, real time between them, the load of scenarios
// instead of the requests; everything healed, and time to converge, at the end.
type realPlan struct {
	scenario.Plan
	// Refused are what real processes cannot be made to do. The plan goes without it.
	Refused []string
	// Changed says what else is not as in the file.
	Changed []string

	on     []scenario.Step // faults
	spoilt []scenario.Step // documents
	paused []string        // servers
	ended  []string
	left   []string // labels of faults that were refused
}

// newRealPlan makes the plan of a file.
func newRealPlan(r *search.Repro) *realPlan {
	p := &realPlan{Plan: scenario.Plan{Servers: r.Case.Servers, Bounds: search.Bounds, Pressure: history.Pressure{Operations: 500}}}
	for i, request := range r.Case.Requests {
		if request.Upgrade {
			p.Traffic = scenario.UpgradeTraffic
		}
		if request.Forged != "" {
			p.refuse("request %d, %s: the load forges nothing", i+1, request)
		}
	}
	all := moments(&r.Case)
	for i, m := range all {
		least := time.Duration(0)
		if m.index < 0 {
			least = p.Bounds.Staleness + settledBefore
		} else {
			p.step(m.index, r.Case.Steps[m.index])
		}
		if i == len(all)-1 {
			least = max(least, observed)
		}
		p.wait(max(least, m.scaled()))
		if m.wait > longestWait {
			p.Changed = append(p.Changed, fmt.Sprintf("after step %d it waits %s, not %s", m.index+1, longestWait, m.wait))
		}
	}
	p.restore()
	p.add(scenario.Step{Action: scenario.Outlast, For: p.Bounds.Convergence + 5*time.Second})
	return p
}

func (p *realPlan) refuse(format string, args ...any) {
	p.Refused = append(p.Refused, fmt.Sprintf(format, args...))
}

func (p *realPlan) add(s scenario.Step) { p.Steps = append(p.Steps, s) }

// wait adds a wait, or lengthens the one that is there: the step between may have been refused.
func (p *realPlan) wait(d time.Duration) {
	if d == 0 {
		return
	}
	if n := len(p.Steps); n > 0 && p.Steps[n-1].Action == scenario.Soak {
		p.Steps[n-1].For = max(p.Steps[n-1].For, d)
		return
	}
	p.add(scenario.Step{Action: scenario.Soak, For: d})
}

// step adds the i-th step of the case, unless it must be refused.
func (p *realPlan) step(i int, s scenario.Step) {
	why := ""
	switch s.Action {
	case scenario.Inject:
		if other := p.clash(s.Fault); other != "" {
			p.left = append(p.left, s.Label)
			why = other + " is on that link, and only one fault of a link can end connections"
		}
	case scenario.Heal:
		if slices.Contains(p.left, s.Label) {
			p.left = without(p.left, s.Label)
			return
		}
	}
	if why != "" {
		p.refuse("step %d, %s: %s", i+1, s, why)
		return
	}
	p.add(s)
	p.note(s)
}

// clash is a fault that is on and cannot share its link with another: toxics that end connections are alone in their stream
// (fault.Fabric.Inject).
func (p *realPlan) clash(f *fault.Fault) string {
	ends := []fault.Kind{fault.Timeout, fault.Reset, fault.LimitData}
	for _, s := range p.on {
		o := s.Fault
		if o.From == f.From && o.To == f.To && slices.Contains(ends, o.Kind) && slices.Contains(ends, f.Kind) && meet(o.Direction, f.Direction) {
			return o.Detail()
		}
	}
	return ""
}

func meet(a, b fault.Direction) bool {
	a, b = cmp.Or(a, fault.Both), cmp.Or(b, fault.Both)
	return a == fault.Both || b == fault.Both || a == b
}

// note remembers what a step leaves behind.
func (p *realPlan) note(s scenario.Step) {
	switch s.Action {
	case scenario.Inject:
		p.on = append(p.on, s)
	case scenario.Heal:
		p.on = slices.DeleteFunc(p.on, func(o scenario.Step) bool { return o.Label == s.Label })
	case scenario.BreakDiscovery:
		p.spoilt = append(p.spoilt, s)
	case scenario.RestoreDiscovery:
		p.spoilt = slices.DeleteFunc(p.spoilt, func(o scenario.Step) bool { return o.Server == s.Server && o.Path == s.Path })
	case scenario.Pause:
		p.paused = append(p.paused, s.Server)
	case scenario.Kill, scenario.Stop:
		p.ended = append(p.ended, s.Server)
		p.paused = without(p.paused, s.Server)
	case scenario.Resume:
		p.paused = without(p.paused, s.Server)
	case scenario.Start:
		p.ended = without(p.ended, s.Server)
	}
}

// restore undoes what the case leaves behind.
func (p *realPlan) restore() {
	for _, s := range p.on {
		p.add(scenario.Step{Action: scenario.Heal, Label: s.Label})
	}
	for _, s := range p.spoilt {
		p.add(scenario.Step{Action: scenario.RestoreDiscovery, Server: s.Server, Path: s.Path})
	}
	for _, name := range p.paused {
		p.add(scenario.Step{Action: scenario.Resume, Server: name})
	}
	for _, name := range p.ended {
		p.add(scenario.Step{Action: scenario.Start, Server: name})
	}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}
