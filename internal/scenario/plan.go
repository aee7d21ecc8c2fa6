package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
)

// Cluster starts a plan whose i-th server first runs version(i). Servers are called a, b, c, …
func (p Parameters) Cluster(version func(i int) string) *Plan {
	plan := &Plan{Bounds: p.Bounds}
	for i := range p.Servers {
		plan.Servers = append(plan.Servers, Server{Name: ServerName(i), Version: version(i)})
	}
	return plan
}

// ServerName returns the name of the i-th server: a to z, then s26, s27, …
func ServerName(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return fmt.Sprintf("s%d", i)
}

func (plan *Plan) Add(s Step)            { plan.Steps = append(plan.Steps, s) }
func (plan *Plan) Soak(d time.Duration)  { plan.Add(Step{Action: Soak, For: d}) }
func (plan *Plan) Sweep()                { plan.Add(Step{Action: Sweep}) }
func (plan *Plan) Restart(server string) { plan.Add(Step{Action: Restart, Server: server}) }
func (plan *Plan) Replace(server, version string) {
	plan.Add(Step{Action: Replace, Server: server, Version: version})
}
func (plan *Plan) Inject(label string, f fault.Fault) {
	plan.Add(Step{Action: Inject, Fault: &f, Label: label})
}
func (plan *Plan) Heal(label string)   { plan.Add(Step{Action: Heal, Label: label}) }
func (plan *Plan) Start(server string) { plan.Add(Step{Action: Start, Server: server}) }
func (plan *Plan) Stop(server string)  { plan.Add(Step{Action: Stop, Server: server}) }
func (plan *Plan) Kill(server string)  { plan.Add(Step{Action: Kill, Server: server}) }

// SetUp restarts a server with a setup.
func (plan *Plan) SetUp(server string, setup Setup) {
	plan.Add(Step{Action: Restart, Server: server, Setup: &setup})
}

// Names returns the names of all servers, in order.
func (plan *Plan) Names() []string {
	var names []string
	for _, s := range plan.Servers {
		names = append(names, s.Name)
	}
	return names
}

// Suffer switches the faults on. It returns a function that heals them, the last first.
func (plan *Plan) Suffer(faults ...fault.Fault) (heal func()) {
	for _, f := range faults {
		plan.Inject(f.String(), f)
	}
	return func() {
		for _, f := range slices.Backward(faults) {
			plan.Heal(f.String())
		}
	}
}

// Settle waits for the staleness bound, and then for the time observe. In that time, a server's
// missing knowledge excuses no wrong answer.
func (plan *Plan) Settle(observe time.Duration) { plan.Soak(plan.Bounds.Staleness + observe) }

// Converge waits until all answers must be right again, and then for some seconds in which they are
// checked.
func (plan *Plan) Converge() { plan.ConvergeAfter(0) }

// ConvergeAfter is Converge for a disturbance after which the cluster needs up to back to recover.
func (plan *Plan) ConvergeAfter(back time.Duration) {
	plan.Add(Step{Action: Outlast, For: back + plan.Bounds.Convergence + 5*time.Second})
}

// Lengthen makes the load run longer by a time. It adds the time before the wait that ends the
// plan, if there is one. Zero changes nothing.
func (plan *Plan) Lengthen(by time.Duration) {
	if by == 0 {
		return
	}
	end := len(plan.Steps)
	if end > 0 && plan.Steps[end-1].Action == Outlast {
		end--
	}
	plan.Steps = slices.Insert(plan.Steps, end, Step{Action: Soak, For: by})
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
		if s.Action != StartControllers && s.Action != StartTests {
			note(s.Version)
		}
	}
	return versions
}

// Define adds a step that creates a definition or changes its versions; Undefine deletes it.
func (plan *Plan) Define(d Definition)   { plan.Add(Step{Action: Define, Definition: &d}) }
func (plan *Plan) Undefine(d Definition) { plan.Add(Step{Action: Undefine, Definition: &d}) }

// Traffic is the load of a plan. The zero value is the general load: every kind of request for
// everything that is served. Other profiles change the weights, and add requests that are costly or
// need objects.
type Traffic string

// The profiles of traffic.
const (
	GeneralTraffic     Traffic = ""
	WatchTraffic       Traffic = "watch"       // mostly watches, up to ten seconds long
	SubresourceTraffic Traffic = "subresource" // mostly subresources
	UpgradeTraffic     Traffic = "upgrade"     // in addition to the general load, upgraded connections: watches by WebSocket
	FormatTraffic      Traffic = "format"      // every media type for bodies and answers, every type of patch
	LargeListTraffic   Traffic = "large-list"  // lists of many objects, whole and in pages
	// DiscoveryTraffic is much discovery, in all its formats, conditional or not; OpenAPI; and the
	// requests that kubectl makes because of it.
	DiscoveryTraffic Traffic = "discovery"
	HostileTraffic   Traffic = "hostile" // the general load, with headers that only servers may send
	SparseTraffic    Traffic = "sparse"  // the general load at a hundredth of its rate, for runs of hours
)

// Traffics lists all profiles.
var Traffics = []Traffic{
	GeneralTraffic, WatchTraffic, SubresourceTraffic, UpgradeTraffic, FormatTraffic, LargeListTraffic, DiscoveryTraffic, HostileTraffic,
	SparseTraffic,
}
