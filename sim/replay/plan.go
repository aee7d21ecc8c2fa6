// Package replay helps to run a repro file again, in the simulator or on real kube-apiservers. It
// makes the plan for real servers, describes what happened, and says whether a violation is the
// violation of the file.
package replay

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

// Pace says how long the waits of a plan are. Real leases and retries need real time, and an hour
// would be too long.
type Pace struct {
	// Settled is the wait before the first step. If Converge is set, the wait ends earlier when the
	// servers have converged.
	Settled time.Duration
	// Shortest and Longest are the limits for the wait between two steps.
	Shortest, Longest time.Duration
	// Observed is how long the load continues after the time of a request of the case. The load
	// requests all resources in turn, and needs some time until it reaches the resource of that
	// request.
	Observed time.Duration
	// Converge ends the waits at the beginning and at the end when the servers have converged.
	Converge bool
}

// patient is the pace for repeating a file. The load reaches the resource of every request in the
// file.
var patient = Pace{Settled: search.Bounds.Staleness + 4*time.Second, Shortest: 2 * time.Second, Longest: time.Minute, Observed: 15 * time.Second}

// Brisk is the pace of a search on real servers: a schedule takes seconds. The longest wait is
// longer than the staleness bound, so that at its end no wrong answer is excused as stale.
var Brisk = Pace{Settled: search.Bounds.Convergence, Shortest: time.Second, Longest: 6500 * time.Millisecond, Observed: 2 * time.Second, Converge: true}

// Options describe the abilities of the real servers.
type Options struct {
	// File is the name of the repro file, for errors.
	File string
	// MaxServers is the maximum number of servers of the backend.
	MaxServers int
	// Lenient leaves out the steps and requests that are impossible on real servers. Otherwise a
	// file with such a step or request is refused.
	Lenient bool
	// Preset returns the policy of the proxy in a kube-apiserver of that version.
	Preset func(version string) (proxy.Policy, error)
}

// Plan is a case of the simulator as a plan for real servers. It has the same servers and steps,
// real waits between the steps, and the load of scenarios instead of the case's requests. At its
// end everything is healed and has time to converge.
type Plan struct {
	scenario.Plan
	// Subject is the subject whose proxy behaves like the policy of the file.
	Subject string
	// Refused lists the steps and requests that are impossible on real servers, and that the plan
	// leaves out.
	Refused []string
	// Changed lists the other differences between the plan and the file.
	Changed []string

	state *scenario.State // the state after the steps so far
}

// NewPlan makes the plan of a repro file. The error says why real servers cannot carry out the
// plan.
func NewPlan(r *search.Repro, o Options) (*Plan, error) {
	fail := func(err error) (*Plan, error) { return nil, fmt.Errorf("replay %s on real servers: %w", o.File, err) }
	if n := len(r.Case.Servers); n > o.MaxServers {
		return fail(fmt.Errorf("it has %d servers, and there is room for %d", n, o.MaxServers))
	}
	p := planOf(&r.Case, patient)
	if r.Found != nil { // the file already has the steps for real servers
		p = planAsFound(r)
	}
	subject, unlike, err := subjectOf(r.Spec, p.Versions(), o.Preset)
	if err != nil {
		return fail(err)
	}
	if r.Found != nil { // it was found on servers like these
		subject, unlike = r.Found.Subject, nil
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

// subjectOf returns the subject that behaves like a policy, and the differences between that policy
// and servers of those versions.
func subjectOf(spec search.Spec, versions []string, preset func(string) (proxy.Policy, error)) (subject string, unlike []string, err error) {
	for _, c := range spec.Changes {
		unlike = append(unlike, "change "+c+": a replay does not change the policy of real servers")
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

// planAsFound returns the plan of a file that was found on real servers.
func planAsFound(r *search.Repro) *Plan {
	p := &Plan{Plan: scenario.Plan{Servers: r.Case.Servers, Steps: r.Case.Steps, Bounds: search.Bounds, Pressure: leastPressure}}
	if r.Case.Load != nil {
		p.Traffic, p.Nodes = r.Case.Load.Traffic, r.Case.Load.Nodes
	}
	return p
}

// leastPressure is the minimum load. A run of a file with less load proves nothing.
var leastPressure = history.Pressure{Operations: 500}

// ScheduleOf makes the plan of a case for a search on real servers. It leaves out the steps that
// are impossible on real servers.
func ScheduleOf(c *sim.Case) scenario.Plan {
	bare := *c
	bare.Requests = nil // its length depends only on the steps
	for n := len(bare.Steps); n > 0 && bare.Steps[n-1].Action == scenario.Outlast; n-- {
		bare.Steps = bare.Steps[:n-1] // the plan waits for a condition instead
	}
	p := planOf(&bare, Brisk)
	p.Traffic = trafficOf(c)
	return p.Plan
}

// Enclosed is a plan at the pace of [Brisk] with other steps: it waits until the servers have
// converged, carries out the steps, undoes their effects, and waits again.
func Enclosed(p scenario.Plan, steps []scenario.Step) scenario.Plan {
	whole := Plan{state: scenario.NewState(p.Servers), Plan: p}
	whole.Steps = nil
	whole.add(scenario.Step{Action: scenario.Converge, For: Brisk.Settled})
	for _, s := range steps {
		if whole.state.Apply(s) == nil {
			whole.add(s)
		}
	}
	whole.restore()
	whole.add(scenario.Step{Action: scenario.Converge, For: p.Bounds.Convergence + 5*time.Second})
	return whole.Plan
}

// Enclosing returns the steps of a plan without the steps that [Enclosed] adds at both ends.
func Enclosing(p scenario.Plan) []scenario.Step {
	steps := p.Steps
	if len(steps) > 0 && steps[0].Action == scenario.Converge {
		steps = steps[1:]
	}
	if n := len(steps); n > 0 && steps[n-1].Action == scenario.Converge {
		steps = steps[:n-1]
	}
	return steps
}

// trafficOf returns a load of the same kind as the first request of a case. So each kind of load is
// as frequent as that kind of request.
func trafficOf(c *sim.Case) scenario.Traffic {
	if len(c.Requests) == 0 {
		return scenario.GeneralTraffic
	}
	switch r := c.Requests[0]; {
	case r.Forged != "":
		return scenario.HostileTraffic
	case r.Upgrade:
		return scenario.UpgradeTraffic
	case r.Verb == "watch":
		return scenario.WatchTraffic
	case r.Subresource != "":
		return scenario.SubresourceTraffic
	case r.Verb == history.VerbDiscovery:
		return scenario.DiscoveryTraffic
	case r.Verb == history.VerbTable, r.Verb == "patch":
		return scenario.FormatTraffic
	}
	return scenario.GeneralTraffic
}

// nodesShare is the share, in percent, of a kubelet's requests in the load if a case has any.
const nodesShare = 5

// planOf makes the plan. It checks only requests and faults, and not the subject.
func planOf(c *sim.Case, pace Pace) *Plan {
	p := &Plan{state: scenario.NewState(c.Servers), Plan: scenario.Plan{Servers: c.Servers, Bounds: search.Bounds, Pressure: leastPressure}}
	for i, request := range c.Requests {
		if request.Upgrade {
			p.Traffic = scenario.UpgradeTraffic
		}
		if request.User == workload.Node {
			p.Nodes = nodesShare
		}
		if request.Forged != "" {
			p.refuse("request %d, %s: the load forges nothing", i+1, request)
		}
	}
	all := moments(c, pace.Observed)
	for i, m := range all {
		least := time.Duration(0)
		switch {
		case m.index >= 0:
			p.step(m.index, c.Steps[m.index])
		case pace.Converge:
			p.add(scenario.Step{Action: scenario.Converge, For: pace.Settled})
		default:
			least = pace.Settled
		}
		if i == len(all)-1 {
			least = max(least, pace.Observed)
		}
		p.wait(max(least, m.scaled(pace)))
		if m.wait > pace.Longest {
			p.Changed = append(p.Changed, fmt.Sprintf("after step %d it waits %s, not %s", m.index+1, pace.Longest, m.wait))
		}
	}
	p.restore()
	end := scenario.Step{Action: scenario.Outlast, For: p.Bounds.Convergence + 5*time.Second}
	if pace.Converge {
		end.Action = scenario.Converge
	}
	p.add(end)
	return p
}

func (p *Plan) refuse(format string, args ...any) {
	p.Refused = append(p.Refused, fmt.Sprintf(format, args...))
}

func (p *Plan) add(s scenario.Step) { p.Steps = append(p.Steps, s) }

// wait adds a wait, or lengthens a wait that is the last step so far. The last step is a wait if
// the step between was left out.
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

// step adds step i of the case unless it must be refused. It also leaves out the heal of a refused
// fault.
func (p *Plan) step(i int, s scenario.Step) {
	if err := p.state.Apply(s); err != nil {
		if s.Action == scenario.Inject {
			p.refuse("step %d: %s", i+1, err)
		}
		if s.Action == scenario.Inject || s.Action == scenario.Heal {
			return
		}
	}
	p.add(s)
}

// restore undoes the effects that last after the case, except for definitions.
func (p *Plan) restore() {
	for _, s := range p.state.Undo() {
		if s.Action != scenario.Undefine {
			p.add(s)
		}
	}
}

// moment is a step of a case other than a wait. The first moment is the beginning of the case.
type moment struct {
	index int // index of the step; -1 is the beginning
	at    time.Duration
	// wait is how long the case waits after the step. until is the time from the step to the end of
	// the observation of the last request in that wait; 0 if there is no request.
	wait, until time.Duration
}

// moments returns the steps of a case other than waits. It assumes that a step itself takes no
// time. observed is the time that the observation of a request takes.
func moments(c *sim.Case, observed time.Duration) []moment {
	all := []moment{{index: -1}}
	ends := make([]time.Duration, len(c.Steps)+1) // of the steps, counted from 1
	now := time.Duration(0)
	for i, s := range c.Steps {
		last := &all[len(all)-1]
		switch s.Action {
		case scenario.Soak:
			now += s.For
			last.wait = now - last.at
		case scenario.Outlast: // counts from the last disturbance, usually the last moment
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
			if m.index < r.Step || m.at < sent { // the request follows that step, or comes long after it
				n = i
			}
		}
		all[n].until = max(all[n].until, sent-all[n].at+observed)
	}
	return all
}

// scaled returns the wait of a plan after a moment.
func (m moment) scaled(pace Pace) time.Duration {
	d := max(m.wait, m.until)
	if d == 0 {
		return 0
	}
	return min(max(d, pace.Shortest), pace.Longest)
}
