package scenarios

import (
	"fmt"
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
func (plan *Plan) heal(label string)  { plan.add(Step{Action: Heal, Label: label}) }
func cut(from, to string) fault.Fault { return fault.Fault{Kind: fault.Cut, From: from, To: to} }

// settle waits until ignorance is no excuse any more, and then long enough to see what happens.
func (plan *Plan) settle(observe time.Duration) { plan.soak(plan.Bounds.Staleness + observe) }

// converge waits until all must be well again, and long enough after that to see whether it is.
func (plan *Plan) converge() {
	plan.add(Step{Action: Outlast, For: plan.Bounds.Convergence + 5*time.Second})
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
