// Package replay helps to run a repro file again, in the simulator or on real kube-apiservers: it
// makes the plan for real servers, tells what happened, and says whether the violation is that of
// the file.
package replay

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

// settledBefore is how long, in addition to the staleness bound, the control plane is left alone
// before the first step.
const settledBefore = 4 * time.Second

// Options say what the real servers of a plan can do.
type Options struct {
	// File is the name of the repro file, for errors.
	File string
	// MaxServers is how many servers the backend has room for.
	MaxServers int
	// Lenient leaves out what real servers cannot be made to do. Without it, a file with such a
	// step or request is refused.
	Lenient bool
	// Preset returns the policy that the proxy of a kube-apiserver of that version behaves like.
	Preset func(version string) (proxy.Policy, error)
}

// Plan is a case of the simulator as a plan for real servers: the same servers and steps, real
// waits between them, and the load of scenarios instead of the case's requests. At its end all is
// healed and has time to converge.
type Plan struct {
	scenario.Plan
	// Subject is what behaves like the policy of the file.
	Subject string
	// Refused is what real servers cannot be made to do. The plan goes without it.
	Refused []string
	// Changed says what else is not as in the file.
	Changed []string

	state *scenario.State // after the steps so far
}

// NewPlan makes the plan of a repro file. The error says why real servers cannot carry it out.
func NewPlan(r *search.Repro, o Options) (*Plan, error) {
	fail := func(err error) (*Plan, error) { return nil, fmt.Errorf("replay %s on real servers: %w", o.File, err) }
	if n := len(r.Case.Servers); n > o.MaxServers {
		return fail(fmt.Errorf("it has %d servers, and there is room for %d", n, o.MaxServers))
	}
	p := planOf(r)
	subject, unlike, err := subjectOf(r.Spec, p.Versions(), o.Preset)
	if err != nil {
		return fail(err)
	}
	p.Subject, p.Refused = subject, append(unlike, p.Refused...)
	if len(p.Refused) > 0 && !o.Lenient {
		return fail(fmt.Errorf("they cannot be made to do all of it; --lenient does the rest:\n  %s", strings.Join(p.Refused, "\n  ")))
	}
	if err := p.Validate(); err != nil {
		return fail(err)
	}
	return p, nil
}

// subjectOf returns the subject that behaves like a policy, and how servers of those versions
// differ.
func subjectOf(spec search.Spec, versions []string, preset func(string) (proxy.Policy, error)) (subject string, unlike []string, err error) {
	for _, c := range spec.Changes {
		unlike = append(unlike, "change "+c+": the policy of a real kube-apiserver, and of a run's sidecar, cannot be changed")
	}
	switch spec.Policy {
	case search.None:
		return scenario.SubjectNone, unlike, nil
	case "reference":
		return scenario.SubjectReference, unlike, nil
	case "alpha-1.28":
		return "", nil, fmt.Errorf("policy %s: the backend local has no subject that works by StorageVersion objects; it has %s",
			spec.Policy, strings.Join(scenario.Subjects, ", "))
	}
	searched, _, err := search.Spec{Policy: spec.Policy}.Build()
	if err != nil {
		return "", nil, err
	}
	for _, v := range versions {
		own, err := preset(v)
		if err != nil {
			return "", nil, err
		}
		name := own.Name
		if own.Name = searched.Name; !reflect.DeepEqual(own, searched) {
			unlike = append(unlike, fmt.Sprintf("policy %s in kube-apiserver %s: its own proxy behaves like %s", spec.Policy, v, name))
		}
	}
	return scenario.SubjectBuiltin, unlike, nil
}

// planOf makes the plan. It refuses only requests and faults, not the subject.
func planOf(r *search.Repro) *Plan {
	p := &Plan{state: scenario.NewState(r.Case.Servers), Plan: scenario.Plan{Servers: r.Case.Servers, Bounds: search.Bounds, Pressure: history.Pressure{Operations: 500}}}
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

func (p *Plan) refuse(format string, args ...any) {
	p.Refused = append(p.Refused, fmt.Sprintf(format, args...))
}

func (p *Plan) add(s scenario.Step) { p.Steps = append(p.Steps, s) }

// wait adds a wait, or lengthens the one that is there: the step between may have been refused.
func (p *Plan) wait(d time.Duration) {
	if d == 0 {
		return
	}
	if n := len(p.Steps); n > 0 && p.Steps[n-1].Action == scenario.Soak {
		p.Steps[n-1].For = max(p.Steps[n-1].For, d)
		return
	}
	p.add(scenario.Step{Action: scenario.Soak, For: d})
}

// step adds the i-th step of the case unless it must be refused. It also skips the heal of a
// refused fault.
func (p *Plan) step(i int, s scenario.Step) {
	if s.Action == scenario.Inject {
		if other := p.clash(s.Fault); other != "" {
			p.refuse("step %d, %s: %s is on that link, and only one fault of a link can end connections", i+1, s, other)
			return
		}
	}
	if err := p.state.Apply(s); err != nil && s.Action == scenario.Heal {
		return
	}
	p.add(s)
}

// clash returns a fault that is on and cannot share its link with f; "" if there is none. A toxic
// that ends connections must be the only one of its direction.
func (p *Plan) clash(f *fault.Fault) string {
	ends := []fault.Kind{fault.Timeout, fault.Reset, fault.LimitData}
	for _, s := range p.state.On() {
		o := s.Fault
		if o != nil && o.From == f.From && o.To == f.To && slices.Contains(ends, o.Kind) && slices.Contains(ends, f.Kind) && meet(o.Direction, f.Direction) {
			return o.Detail()
		}
	}
	return ""
}

func meet(a, b fault.Direction) bool {
	a, b = cmp.Or(a, fault.Both), cmp.Or(b, fault.Both)
	return a == fault.Both || b == fault.Both || a == b
}

// restore undoes what the case leaves behind, except for definitions.
func (p *Plan) restore() {
	for _, s := range p.state.Undo() {
		if s.Action != scenario.Undefine {
			p.add(s)
		}
	}
}

// The bounds of the waits between two steps of a plan. Real leases and retries need real time, and
// nobody waits for an hour.
const (
	shortestWait = 2 * time.Second
	longestWait  = time.Minute
	// observed is how long the load goes on after the time of a request of the file: it requests all
	// resources in turn, and needs this long to come to that of the file.
	observed = 15 * time.Second
)

// moment is a step of a case other than a wait; the first moment is the beginning.
type moment struct {
	index int // of the step; -1 is the beginning
	at    time.Duration
	// wait is how long the case waits after the step. until is when the last request of that wait has
	// been observed, counted from the step; 0 if there is no request.
	wait, until time.Duration
}

// moments lists the steps of a case other than waits. A step is taken to need no time itself.
func moments(c *sim.Case) []moment {
	all := []moment{{index: -1}}
	ends := make([]time.Duration, len(c.Steps)+1) // of the steps, counted from 1
	now := time.Duration(0)
	for i, s := range c.Steps {
		last := &all[len(all)-1]
		switch s.Action {
		case scenario.Soak:
			now += s.For
			last.wait = now - last.at
		case scenario.Outlast: // of the last disturbance, which the last moment mostly is
			now = max(now, last.at+s.For)
			last.wait = now - last.at
		default:
			all = append(all, moment{index: i, at: now})
		}
		ends[i+1] = now
	}
	for _, r := range c.Requests {
		sent := ends[r.Step] + r.After
		n := 0
		for i, m := range all {
			if m.index < r.Step || m.at < sent { // it follows that step, or is sent when that one has long been done
				n = i
			}
		}
		all[n].until = max(all[n].until, sent-all[n].at+observed)
	}
	return all
}

// scaled is how long a plan waits after a moment.
func (m moment) scaled() time.Duration {
	d := max(m.wait, m.until)
	if d == 0 {
		return 0
	}
	return min(max(d, shortestWait), longestWait)
}
