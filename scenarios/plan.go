package scenarios

import (
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

// cluster starts a plan whose i-th server first runs version(i). Servers are called a, b, c, …
func (p Parameters) cluster(version func(i int) string) *Plan {
	plan := &Plan{Bounds: p.Bounds}
	for i := range p.Servers {
		plan.Servers = append(plan.Servers, Server{Name: ServerName(i), Version: version(i)})
	}
	return plan
}

// ServerName is the name of the i-th server: a to z, then s26, s27, …
func ServerName(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return fmt.Sprintf("s%d", i)
}

// newest makes one server, a, run the newer version: it alone serves what only that version knows.
func (p Parameters) newest(i int) string {
	if i == 0 {
		return p.To
	}
	return p.From
}

// newestTwo makes two servers, a and b, run the newer version.
func (p Parameters) newestTwo(i int) string {
	if i < 2 {
		return p.To
	}
	return p.From
}

func (plan *Plan) add(s Step)            { plan.Steps = append(plan.Steps, s) }
func (plan *Plan) soak(d time.Duration)  { plan.add(Step{Action: Soak, For: d}) }
func (plan *Plan) sweep()                { plan.add(Step{Action: Sweep}) }
func (plan *Plan) restart(server string) { plan.add(Step{Action: Restart, Server: server}) }
func (plan *Plan) replace(server, version string) {
	plan.add(Step{Action: Replace, Server: server, Version: version})
}
func (plan *Plan) inject(label string, f fault.Fault) {
	plan.add(Step{Action: Inject, Fault: &f, Label: label})
}
func (plan *Plan) heal(label string)   { plan.add(Step{Action: Heal, Label: label}) }
func (plan *Plan) start(server string) { plan.add(Step{Action: Start, Server: server}) }
func (plan *Plan) stop(server string)  { plan.add(Step{Action: Stop, Server: server}) }
func (plan *Plan) kill(server string)  { plan.add(Step{Action: Kill, Server: server}) }
func cut(from, to string) fault.Fault  { return fault.Fault{Kind: fault.Cut, From: from, To: to} }

// setUp restarts a server with a setup.
func (plan *Plan) setUp(server string, setup Setup) {
	plan.add(Step{Action: Restart, Server: server, Setup: &setup})
}

// misconfigure gives a server, in a cluster that is well, a setup for long enough to see what comes of it, and puts it right again.
func (plan *Plan) misconfigure(server string, setup Setup) {
	plan.settle(4 * time.Second)
	plan.setUp(server, setup)
	plan.settle(12 * time.Second)
	plan.restart(server)
	plan.converge()
}

// names are those of all servers, in order.
func (plan *Plan) names() []string {
	var names []string
	for _, s := range plan.Servers {
		names = append(names, s.Name)
	}
	return names
}

// suffer switches the faults on and returns what takes them away again, the last first.
func (plan *Plan) suffer(faults ...fault.Fault) (relieve func()) {
	for _, f := range faults {
		plan.inject(f.String(), f)
	}
	return func() {
		for _, f := range slices.Backward(faults) {
			plan.heal(f.String())
		}
	}
}

// from puts the fault on the way from each of the servers to the one that it names, that one excepted.
func from(servers []string, f fault.Fault) []fault.Fault {
	var all []fault.Fault
	for _, s := range servers {
		if s != f.To {
			f.From = s
			all = append(all, f)
		}
	}
	return all
}

// bothWays adds to each fault the same on the way back.
func bothWays(faults []fault.Fault) []fault.Fault {
	all := slices.Clone(faults)
	for _, f := range faults {
		f.From, f.To = f.To, f.From
		all = append(all, f)
	}
	return all
}

// around puts the fault on the ways between each server and the next, the first coming after the last.
func around(servers []string, f fault.Fault) []fault.Fault {
	var all []fault.Fault
	for i, s := range servers {
		f.From, f.To = s, servers[(i+1)%len(servers)]
		all = append(all, f)
	}
	if len(servers) == 2 {
		return all // there and back again
	}
	return bothWays(all)
}

// settle waits until ignorance is no excuse any more, and then long enough to see what happens.
func (plan *Plan) settle(observe time.Duration) { plan.soak(plan.Bounds.Staleness + observe) }

// converge waits until all must be well again, and long enough after that to see whether it is.
func (plan *Plan) converge() { plan.convergeAfter(0) }

// convergeAfter is converge where what was disturbed may take so long to be as it was.
func (plan *Plan) convergeAfter(back time.Duration) {
	plan.add(Step{Action: Outlast, For: back + plan.Bounds.Convergence + 5*time.Second})
}

// Versions lists the apiserver versions that the plan needs, each once, in order of first use.
func (plan *Plan) Versions() []string {
	var versions []string
	seen := map[string]bool{"": true}
	note := func(v string) {
		if !seen[v] {
			seen[v] = true
			versions = append(versions, v)
		}
	}
	for _, s := range plan.Servers {
		note(s.Version)
	}
	for _, s := range plan.Steps {
		note(s.Version)
	}
	return versions
}
