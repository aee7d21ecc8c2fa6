package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/search"
)

// settledBefore is how long, beyond the time for which ignorance is excused, a control plane is left alone before the first step.
const settledBefore = 4 * time.Second

// realPlan is a case of the simulator as a plan for real processes: the same servers and steps, real time between them, the load of scenarios
// instead of the requests; everything healed, and time to converge, at the end.
type realPlan struct {
	scenarios.Plan
	// Refused are what real processes cannot be made to do. The plan goes without it.
	Refused []string
	// Changed says what else is not as in the file.
	Changed []string

	on     []scenarios.Step // faults
	spoilt []scenarios.Step // documents
	paused []string         // servers
	ended  []string
	left   []string // labels of faults that were refused
}

// newRealPlan makes the plan of a file.
func newRealPlan(r *search.Repro) *realPlan {
	p := &realPlan{Plan: scenarios.Plan{Servers: r.Case.Servers, Bounds: search.Bounds, Pressure: history.Pressure{Operations: 500}}}
	for i, request := range r.Case.Requests {
		if request.Upgrade {
			p.Traffic = scenarios.UpgradeTraffic
		}
		if request.Forged {
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
	p.add(scenarios.Step{Action: scenarios.Outlast, For: p.Bounds.Convergence + 5*time.Second})
	return p
}

func (p *realPlan) refuse(format string, args ...any) {
	p.Refused = append(p.Refused, fmt.Sprintf(format, args...))
}

func (p *realPlan) add(s scenarios.Step) { p.Steps = append(p.Steps, s) }

// wait adds a wait, or lengthens the one that is there: the step between may have been refused.
func (p *realPlan) wait(d time.Duration) {
	if d == 0 {
		return
	}
	if n := len(p.Steps); n > 0 && p.Steps[n-1].Action == scenarios.Soak {
		p.Steps[n-1].For = max(p.Steps[n-1].For, d)
		return
	}
	p.add(scenarios.Step{Action: scenarios.Soak, For: d})
}

// step adds the i-th step of the case, unless it must be refused.
func (p *realPlan) step(i int, s scenarios.Step) {
	why := ""
	switch s.Action {
	case scenarios.Inject:
		if other := p.clash(s.Fault); other != "" {
			p.left = append(p.left, s.Label)
			why = other + " is on that link, and only one fault of a link can end connections"
		}
	case scenarios.Heal:
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
func (p *realPlan) note(s scenarios.Step) {
	switch s.Action {
	case scenarios.Inject:
		p.on = append(p.on, s)
	case scenarios.Heal:
		p.on = slices.DeleteFunc(p.on, func(o scenarios.Step) bool { return o.Label == s.Label })
	case scenarios.Spoil:
		p.spoilt = append(p.spoilt, s)
	case scenarios.Mend:
		p.spoilt = slices.DeleteFunc(p.spoilt, func(o scenarios.Step) bool { return o.Server == s.Server && o.Path == s.Path })
	case scenarios.Pause:
		p.paused = append(p.paused, s.Server)
	case scenarios.Kill, scenarios.Stop:
		p.ended = append(p.ended, s.Server)
		p.paused = without(p.paused, s.Server)
	case scenarios.Resume:
		p.paused = without(p.paused, s.Server)
	case scenarios.Start:
		p.ended = without(p.ended, s.Server)
	}
}

// restore undoes what the case leaves behind.
func (p *realPlan) restore() {
	for _, s := range p.on {
		p.add(scenarios.Step{Action: scenarios.Heal, Label: s.Label})
	}
	for _, s := range p.spoilt {
		p.add(scenarios.Step{Action: scenarios.Mend, Server: s.Server, Path: s.Path})
	}
	for _, name := range p.paused {
		p.add(scenarios.Step{Action: scenarios.Resume, Server: name})
	}
	for _, name := range p.ended {
		p.add(scenarios.Step{Action: scenarios.Start, Server: name})
	}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}
