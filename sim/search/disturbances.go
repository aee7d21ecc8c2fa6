package search

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

// The kinds of disturbances. The swarm of a case has some of them.
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
	kindDefine    // custom resources and aggregated APIs
	kindDiscovery // a discovery document of a server fails
	kinds
)

// The number of disturbances in a case. Those that undo one are not counted.
const (
	fewestSteps = 1
	mostSteps   = 6
)

// mostReplaced bounds the servers of a rolling upgrade: each takes as long as a restart.
const mostReplaced = 8

// disturb adds the steps that harm or change the control plane.
func (g *Generator) disturb() {
	g.soakFirst()
	var there []int
	var room [kinds]int
	there = room[:0]
	for k := range kinds {
		if g.chance(3) {
			there = append(there, k)
		}
	}
	g.plan.first = len(g.c.Steps)
	upgrade := 0 // servers that the rolling upgrade replaces
	if g.plan.rolling {
		upgrade = min(g.spec.Servers, mostReplaced)
	}
	steps := 0
	if len(there) > 0 {
		steps = fewestSteps + g.fault(mostSteps-fewestSteps+1)
	}
	for done, replaced := 0, 0; done < steps || replaced < upgrade; {
		switch {
		case replaced < upgrade && (done == steps || g.chance(2)):
			g.replace(g.nthReplaced(replaced))
			replaced++
		case g.chance(4) && g.undo():
		default:
			done++
			g.disturbOnce(there[g.fault(len(there))])
		}
		g.soak()
	}
}

// nthReplaced is the i-th server that a rolling upgrade replaces.
func (g *Generator) nthReplaced(i int) int {
	if g.plan.last {
		return g.spec.Servers - 1 - i
	}
	return i
}

// soakFirst adds a wait before the first disturbance, in most cases.
func (g *Generator) soakFirst() {
	if !g.c.Settled || g.chance(4) {
		g.soak()
	}
}

// disturbOnce adds a disturbance of a kind, or nothing where it is not possible.
func (g *Generator) disturbOnce(kind int) {
	if kind <= kindTruncate {
		g.disturbLink(kind)
		return
	}
	server := g.fault(g.spec.Servers)
	name, state := g.names[server], g.plan.state[server]
	switch kind {
	case kindEtcd:
		g.inject(g.blocking(name, fault.Etcd))
	case kindClient:
		g.inject(g.anyFault(fault.Client, name))
	case kindDefine:
		g.define(g.fault(len(definitions)))
	case kindDiscovery:
		g.toggleDiscovery(server, g.fault(2))
	case kindKill:
		if !state.ended() {
			g.process(scenario.Kill, server, isKilled)
		}
	case kindStop:
		if state == isRunning {
			g.process(scenario.Stop, server, isStopped)
		}
	case kindPause:
		if state == isRunning {
			g.process(scenario.Pause, server, isPaused)
		}
	case kindRestart:
		if state == isRunning {
			g.process(scenario.Restart, server, isRunning)
		}
	case kindReplace:
		g.replace(server)
	}
}

// disturbLink adds a fault on the links between two servers.
func (g *Generator) disturbLink(kind int) {
	n := g.spec.Servers
	if n < 2 {
		return
	}
	from := g.fault(n)
	to := g.fault(n - 1)
	if to >= from {
		to++
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

// isolates is the largest number of servers of which one is cut off from all others.
const isolates = 5

// partition cuts both directions between two servers, or off one from all, or all from one.
func (g *Generator) partition(a, b int) {
	shape := g.fault(3)
	if shape == 0 || g.spec.Servers > isolates {
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

func (g *Generator) process(action scenario.Action, server int, then processState) {
	g.plan.state[server] = then
	g.add(scenario.Step{Action: action, Server: g.names[server]})
}

// replace gives a server that runs the other version, or starts one that does not with it.
func (g *Generator) replace(server int) {
	action := scenario.Replace
	switch g.plan.state[server] {
	case isPaused:
		return
	case isKilled, isStopped:
		action = scenario.Start
	}
	g.plan.newer[server] = !g.plan.newer[server]
	g.plan.state[server] = isRunning
	g.add(scenario.Step{Action: action, Server: g.names[server], Version: g.version(g.plan.newer[server])})
}

// paths are those of the discovery documents, by the index of the root.
var paths = [2]string{"/api", "/apis"}

func (g *Generator) toggleDiscovery(server, root int) {
	action := scenario.BreakDiscovery
	if g.plan.spoiled[server][root] {
		action = scenario.RestoreDiscovery
	}
	g.plan.spoiled[server][root] = action == scenario.BreakDiscovery
	g.add(scenario.Step{Action: action, Server: g.names[server], Path: paths[root]})
}

// undo heals one fault or brings back one server, and reports whether there was any.
func (g *Generator) undo() bool {
	n := len(g.plan.on)
	for _, s := range g.plan.state {
		if s != isRunning {
			n++
		}
	}
	if n == 0 {
		return false
	}
	which := g.fault(n)
	if which < len(g.plan.on) {
		g.heal(which)
		return true
	}
	which -= len(g.plan.on)
	for server, s := range g.plan.state {
		if s == isRunning {
			continue
		}
		if which == 0 {
			g.bringBack(server)
			return true
		}
		which--
	}
	return false
}

// bringBack resumes or starts a server.
func (g *Generator) bringBack(server int) {
	action := scenario.Start
	if g.plan.state[server] == isPaused {
		action = scenario.Resume
	}
	g.process(action, server, isRunning)
}

// margin is how long after the convergence bound the last requests are sent.
const margin = 5 * time.Second

// recover undoes everything and waits until all must be right again. A server that was stopped gracefully may stay stopped.
func (g *Generator) recover() {
	g.plan.heals = len(g.c.Steps)
	for len(g.plan.on) > 0 {
		g.heal(g.fault(len(g.plan.on)))
	}
	for server := range g.plan.state {
		for root, spoiled := range g.plan.spoiled[server] {
			if spoiled {
				g.toggleDiscovery(server, root)
			}
		}
		switch state := g.plan.state[server]; {
		case state == isRunning, state == isStopped && g.chance(3):
		default:
			g.bringBack(server)
		}
	}
	g.add(scenario.Step{Action: scenario.Outlast, For: Bounds.Convergence + margin})
	g.plan.ends = len(g.c.Steps)
}
