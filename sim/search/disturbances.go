package search

import (
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the kinds of disturbances. The swarm of a case has some of them.
const (
	kindCut       = iota // one way between two servers
	kindPartition        // both directions between two servers, or all directions of one
	kindBlackHole        // a black hole between two servers
	kindSlow             // between two servers
	kindTruncate         // answers that are reset or break off between two servers
	kindEtcd             // between a server and etcd
	kindClient           // between clients and a server
	kindKill
	kindStop
	kindPause
	kindRestart
	kindReplace   // by the other version
	kindDefine    // of custom resources and aggregated APIs
	kindDiscovery // a fetch of a discovery document of a server fails
	kindConfigure // a restart with another configuration
	kindAdmin     // actions of an administrator on leases and etcd
	kinds
)

// rare kinds are in fewer swarms than others, because their effects hide other effects, and cost
// time.
func rare(kind int) bool { return kind == kindConfigure }

// This is the number of disturbances in a case. Steps that undo a disturbance do not count.
const (
	fewestSteps = 1
	mostSteps   = 6
)

// mostReplaced is the maximum number of servers of a rolling upgrade, because each takes as long as
// a restart.
const mostReplaced = 8

// disturb adds the steps that break or change the control plane.
func (g *Generator) disturb() {
	if !g.c.Settled || g.chance(4) {
		g.soak()
	}
	there := make([]int, 0, kinds)
	for k := range kinds {
		if g.chance(3) && (!rare(k) || g.chance(3)) {
			there = append(there, k)
		}
	}
	g.first = len(g.c.Steps)
	upgrade := 0 // servers that the rolling upgrade still has to replace
	if g.rolling {
		upgrade = min(len(g.names), mostReplaced)
	}
	steps := 0
	if len(there) > 0 {
		steps = fewestSteps + g.fault(mostSteps-fewestSteps+1)
	}
	for done, replaced := 0, 0; done < steps || replaced < upgrade; {
		switch {
		case replaced < upgrade && (done >= steps || g.chance(2)):
			server := replaced
			if g.last {
				server = len(g.names) - 1 - replaced
			}
			if len(g.versions) > 2 && g.upgrades { // replace draws the steps from one version to the next
				g.becomes(server, g.versions[len(g.versions)-1])
			} else {
				g.replace(server)
			}
			replaced++
		case g.chance(4) && g.undo():
		default:
			done++
			g.disturbOnce(there[g.fault(len(there))])
			if g.changeUnseen() {
				done++
			}
		}
		g.soak()
	}
}

// disturbOnce adds a disturbance of a kind. It adds nothing if the disturbance is impossible.
func (g *Generator) disturbOnce(kind int) {
	if kind <= kindTruncate {
		g.disturbLink(kind)
		return
	}
	server := g.fault(len(g.names))
	switch other := g.fault(len(g.names)); kind {
	case kindEtcd, kindPause: // a server that misses changes matters if it needs peers
		if g.version(other) < g.version(server) {
			server = other
		}
	case kindDiscovery: // what a server serves matters to peers that serve less
		if g.version(other) > g.version(server) {
			server = other
		}
	}
	name := g.names[server]
	switch kind {
	case kindEtcd:
		if g.fault(3) == 0 {
			g.inject(g.slow(name, fault.Etcd))
		} else {
			g.inject(g.blocking(name, fault.Etcd))
		}
	case kindClient:
		g.inject(g.anyFault(fault.Client, name))
	case kindDefine:
		if d := g.definition(); g.chance(2) {
			g.defineBriefly(d, name)
		} else {
			g.define(d)
		}
	case kindDiscovery:
		g.breakDiscovery(server)
	case kindReplace:
		g.replace(server)
	case kindConfigure:
		g.configure(server)
	case kindAdmin:
		step := scenario.Step{Action: administrations[g.fault(len(administrations))]}
		if step.Action == scenario.DeleteLease {
			step.Server = name
		}
		g.add(step)
	default:
		g.add(scenario.Step{Action: processActions[kind], Server: name})
	}
}

// unseen is a step that a server misses.
type unseen struct {
	step        int
	by, changed int // the server that misses it, and the server that changes unless a definition does
}

// changeUnseen may add a change that a server misses because of the last step: the server is cut
// off from etcd or paused, it cannot reach the server that changes, or it cannot fetch its
// discovery. What servers believe is wrong only after changes that they missed, and two independent
// disturbances seldom go together so. changeUnseen reports whether it added a step.
func (g *Generator) changeUnseen() bool {
	if len(g.c.Steps) == g.first || len(g.names) < 2 {
		return false
	}
	last := g.c.Steps[len(g.c.Steps)-1]
	fails := last.Action == scenario.BreakDiscovery // which does no harm before somebody fetches it
	alone := last.Action == scenario.Pause          // so that the server misses definitions, too
	var by, changed int
	switch f := last.Fault; {
	case fails:
		changed = slices.Index(g.names, last.Server)
		by = g.anotherThan(changed)
	case alone:
		by = slices.Index(g.names, last.Server)
		changed = g.anotherThan(by)
	case f == nil || f.From == fault.Client:
		return false
	case f.To == fault.Etcd:
		alone = true
		by = slices.Index(g.names, f.From)
		changed = g.anotherThan(by)
	default:
		by, changed = slices.Index(g.names, f.From), slices.Index(g.names, f.To)
	}
	if !fails && (!g.chance(2) || !alone && g.fault(3) == 2) {
		return false
	}
	if g.chance(2) {
		g.soak()
	}
	before := len(g.c.Steps)
	switch n := g.fault(3); {
	case n == 2 && alone:
		g.define(g.definition())
	case n == 2: // it must learn everything again over the disturbed link
		g.add(scenario.Step{Action: scenario.Restart, Server: g.names[by]})
	case n == 1 && !alone, fails:
		g.add(scenario.Step{Action: scenario.Restart, Server: g.names[changed]})
	default:
		g.replace(changed)
	}
	if len(g.c.Steps) == before {
		return false
	}
	g.unseen = append(g.unseen, unseen{step: before, by: by, changed: changed})
	return true
}

// anotherThan returns any other server.
func (g *Generator) anotherThan(server int) int {
	return (server + 1 + g.fault(len(g.names)-1)) % len(g.names)
}

// processActions are the disturbances of one process.
var processActions = [kinds]scenario.Action{
	kindKill: scenario.Kill, kindStop: scenario.Stop, kindPause: scenario.Pause, kindRestart: scenario.Restart,
}

// administrations are actions of an administrator. Those with an effect in the simulator are more
// frequent.
var administrations = [...]scenario.Action{
	scenario.DeleteLease, scenario.DeleteLease, scenario.WithdrawDiscovery, scenario.CompactEtcd, scenario.DefragmentEtcd,
}

// disturbLink adds a fault on the links between two servers.
func (g *Generator) disturbLink(kind int) {
	n := len(g.names)
	if n < 2 {
		return
	}
	from := g.fault(n)
	to := g.fault(n - 1)
	if to >= from {
		to++
	}
	// Most requests cross the links from older servers to newer ones.
	if g.version(from) > g.version(to) && g.fault(4) > 0 {
		from, to = to, from
	}
	a, b := g.names[from], g.names[to]
	switch kind {
	case kindCut:
		g.inject(fault.Fault{Kind: fault.Cut, From: a, To: b})
	case kindPartition:
		g.partition(from, to)
	case kindBlackHole:
		g.inject(g.blackHole(a, b))
	case kindSlow:
		g.inject(g.delaying(a, b))
	case kindTruncate:
		g.inject(g.truncating(a, b))
	}
}

// isolates is the maximum number of servers at which a case cuts one server off from all others.
const isolates = 5

// partition cuts both directions between two servers, or cuts one server off from all others, or
// all others from one.
func (g *Generator) partition(a, b int) {
	shape := g.fault(3)
	if shape == 0 || len(g.names) > isolates {
		g.inject(fault.Fault{Kind: fault.Cut, From: g.names[a], To: g.names[b]})
		g.inject(fault.Fault{Kind: fault.Cut, From: g.names[b], To: g.names[a]})
		return
	}
	for other, name := range g.names {
		switch {
		case other == a:
		case shape == 1:
			g.inject(fault.Fault{Kind: fault.Cut, From: g.names[a], To: name})
		default:
			g.inject(fault.Fault{Kind: fault.Cut, From: name, To: g.names[a]})
		}
	}
}

// replace replaces a running server by another version, or starts an ended server with that
// version.
func (g *Generator) replace(server int) {
	to := g.version(server) + 1
	if len(g.versions) > 2 {
		to += g.fault(len(g.versions) - 1)
	}
	g.becomes(server, g.reduced(to%len(g.versions)))
}

// becomes gives a running server a version, or starts an ended server with that version.
func (g *Generator) becomes(server int, version string) {
	step := scenario.Step{Action: scenario.Replace, Server: g.names[server], Version: version}
	if !g.add(step) {
		step.Action = scenario.Start
		g.add(step)
	}
}

// defineBriefly adds a definition and deletes it soon, or the other way round. In most cases a
// server starts just before, which makes its peers ask once what it serves.
func (g *Generator) defineBriefly(d *scenario.Definition, starts string) {
	if g.fault(4) > 0 {
		g.add(scenario.Step{Action: scenario.Restart, Server: starts})
	}
	g.define(d)
	life := moments[g.fault(len(moments))]
	g.add(scenario.Step{Action: scenario.Soak, For: life + life/16*time.Duration(g.fault(8))})
	g.define(d)
}

// moments are how long a definition exists that somebody deletes at once. Servers tell their peers
// of it about a second later, so some peers learn of it when it is gone.
var moments = [...]time.Duration{time.Second, time.Second, 2 * time.Second, 300 * time.Millisecond, 100 * time.Millisecond, 4 * time.Second}

// breakDiscovery makes fetches of a discovery document of a server fail, or succeed again. Half of
// the failures are those of all servers of its version, because what a peer is not known to serve
// matters only if no other peer is known to serve it.
func (g *Generator) breakDiscovery(server int) {
	step := scenario.Step{Action: scenario.RestoreDiscovery, Server: g.names[server], Path: paths[g.fault(len(paths))]}
	if g.add(step) {
		return
	}
	step.Action, step.Failure = scenario.BreakDiscovery, failures[g.fault(len(failures))]
	if g.chance(2) {
		for other, name := range g.names {
			if other != server && g.version(other) == g.version(server) {
				g.add(scenario.Step{Action: step.Action, Server: name, Path: step.Path, Failure: step.Failure})
			}
		}
	}
	g.add(step)
}

// paths are the paths of the discovery documents.
var paths = [2]string{"/api", "/apis"}

// failures are the ways in which a fetch of a discovery document fails.
var failures = [...]fault.DiscoveryFailure{fault.ServerError, fault.BreaksOff, fault.CutShort}

// healing returns the steps that heal the active faults, in the order of injection. The list is
// valid until the next call.
func (g *Generator) healing() []scenario.Step {
	g.undoing = g.undoing[:0]
	for _, o := range g.state.On() {
		if o.Action == scenario.Inject {
			g.undoing = append(g.undoing, scenario.Step{Action: scenario.Heal, Label: o.Label})
		}
	}
	return g.undoing
}

// undo heals one fault or starts one server again. It reports whether there was anything to undo.
func (g *Generator) undo() bool {
	all := g.healing()
	for _, name := range g.names {
		for _, o := range g.state.On() {
			switch {
			case o.Server != name:
			case o.Action == scenario.Pause:
				all = append(all, scenario.Step{Action: scenario.Resume, Server: name})
			case o.Action == scenario.Kill, o.Action == scenario.Stop:
				all = append(all, scenario.Step{Action: scenario.Start, Server: name})
			}
		}
	}
	return len(all) > 0 && g.add(all[g.fault(len(all))])
}

// margin is the time from the convergence bound to the last requests.
const margin = 5 * time.Second

// recover undoes everything and waits until everything must be right again. A gracefully stopped
// server may stay stopped.
func (g *Generator) recover() {
	g.heals = len(g.c.Steps)
	for all := g.healing(); len(all) > 0; all = g.healing() {
		g.add(all[g.fault(len(all))])
	}
	for _, o := range slices.Clone(g.state.On()) {
		if o.Action == scenario.Define && g.chance(2) {
			g.add(scenario.Step{Action: scenario.Undefine, Definition: o.Definition})
		}
	}
	for _, name := range g.names {
		for _, path := range paths {
			g.add(scenario.Step{Action: scenario.RestoreDiscovery, Server: name, Path: path})
		}
		stopped := slices.ContainsFunc(g.state.On(), func(o scenario.Step) bool { return o.Action == scenario.Stop && o.Server == name })
		if stopped && g.chance(3) {
			continue
		}
		if !g.add(scenario.Step{Action: scenario.Resume, Server: name}) {
			g.add(scenario.Step{Action: scenario.Start, Server: name})
		}
		if kind, _ := g.state.Setup(name).Wrong(); kind != "" || g.state.Setup(name).Refusable() {
			g.add(scenario.Step{Action: scenario.Restart, Server: name})
		}
	}
	if g.defines && g.chance(3) { // nothing that follows corrects what the servers know
		g.defineBriefly(g.definition(), g.names[g.fault(len(g.names))])
	}
	g.add(scenario.Step{Action: scenario.Outlast, For: Bounds.Convergence + margin})
	g.ends = len(g.c.Steps)
}
