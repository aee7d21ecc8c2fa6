package search

import (
	"cmp"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// Generator makes cases of a spec from seeds. A case depends on the seed and on the spec's
// versions, servers, resources and requests, but not on its policy. So the same seeds can compare
// policies. A Generator is not safe for concurrent use.
//
// A case is a swarm (Groce et al., "Swarm Testing", 2012): its seed first draws the kinds of faults
// in the case, because some faults hide the effects of others. A tape of zeros gives a case without
// disturbances.
type Generator struct {
	spec        Spec
	versions    []string   // oldest first
	minors      []string   // of the versions
	partial     [][]string // for each version: the version with some of its APIs switched off
	all         []string   // names for the maximum number of servers
	definitions []scenario.Definition
	targets     targets

	// This is the present case. Its memory is reused for the next one.
	tape    *tape.Tape
	c       sim.Case
	names   []string         // of its servers
	state   scenario.State   // the state after the steps so far
	faults  []fault.Fault    // steps point to these, at most maxFaults
	setups  []scenario.Setup // steps and servers point to these, at most maxSetups
	undoing []scenario.Step  // see healing
	unseen  []unseen         // see changeUnseen

	rolling   bool // a rolling upgrade replaces the servers,
	last      bool // the last one first
	upgrades  bool // all servers become the newest version
	defines   bool // the case has a definition
	reduces   bool // a server has an API switched off
	discovers bool // the case requests discovery too
	created   int  // the first skewed target with an object from the beginning
	first     int  // the first disturbing step; nothing happens before it
	heals     int  // the first step after which everything is healed
	ends      int  // the step after which everything must be right
}

// NewGenerator checks the spec and makes a generator for it.
func NewGenerator(spec Spec) (*Generator, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	g := &Generator{spec: spec, versions: spec.versions(), tape: &tape.Tape{}, faults: make([]fault.Fault, 0, maxFaults),
		setups: make([]scenario.Setup, 0, maxSetups)}
	var err error
	if g.definitions, err = definitionsOf(spec); err != nil {
		return nil, err
	}
	if g.targets, err = newTargets(spec, g.definitions); err != nil {
		return nil, err
	}
	g.partial = partialVersions(g.versions, g.targets)
	for _, v := range g.versions {
		g.minors = append(g.minors, scenario.MinorVersion(v))
	}
	for i := range cmp.Or(spec.Servers, mostDrawn) {
		g.all = append(g.all, scenario.ServerName(i))
	}
	return g, nil
}

// Case returns the case of a seed, and the tape for its run. Both are valid until the next call.
func (g *Generator) Case(seed uint64) (*sim.Case, *tape.Tape) {
	g.tape.Reset(seed)
	g.draw()
	g.tape.Reset(seed) // the choices that made the case are not part of the record of the run
	return &g.c, g.tape
}

// draw makes a case from the choices of the tape.
func (g *Generator) draw() {
	g.clear()
	g.assignVersions()
	g.disturb()
	g.recover()
	g.addRequests()
}

// chance makes a choice of faults that is true in one of n cases, and never on a tape of zeros.
func (g *Generator) chance(n int) bool { return g.tape.OneIn(tape.Faults, n) }

// fault makes a choice of faults among n.
func (g *Generator) fault(n int) int { return g.tape.Choose(tape.Faults, n) }

// work makes a choice of the workload among n.
func (g *Generator) work(n int) int { return g.tape.Choose(tape.Workload, n) }

// clear empties the case.
func (g *Generator) clear() {
	g.c.Servers, g.c.Steps, g.c.Requests = g.c.Servers[:0], g.c.Steps[:0], g.c.Requests[:0]
	g.c.Settled = !g.chance(10)
	g.faults, g.setups, g.unseen, g.defines, g.reduces = g.faults[:0], g.setups[:0], g.unseen[:0], false, false
	g.names = g.all
	if g.spec.Servers == 0 {
		g.names = g.all[:serverCounts[g.fault(len(serverCounts))]]
	}
}

// serverCounts are the numbers of servers from which a case draws if the spec gives none. If one of
// two servers leaves, the other has no peer, so two servers are a special case.
var serverCounts = [...]int{3, 3, 3, 3, 2, 2, 2, 4, 5, 1}

// These are the layouts of versions. There are only a few, because a simulator starts each
// combination of versions only once.
const (
	firstIsNewer = iota // like the scenarios
	firstIsOlder
	halfAreNewer
	everyOtherIsNewer
	allAreOlder // before an upgrade
	allAreNewer // after an upgrade
	shuffled
	layouts
)

// assignVersions chooses the first version of each server.
func (g *Generator) assignVersions() {
	layout := g.fault(2) * halfAreNewer // with one server to ask, or with several
	if g.chance(2) {
		layout = g.fault(layouts)
	}
	n := len(g.names)
	if n > mostDrawn && layout == shuffled {
		layout = halfAreNewer // a simulator keeps each control plane that it has started
	}
	for i, name := range g.names {
		newer := false
		switch layout {
		case firstIsNewer:
			newer = i == 0
		case firstIsOlder:
			newer = i != 0
		case halfAreNewer:
			newer = i < (n+1)/2
		case everyOtherIsNewer:
			newer = i%2 == 1
		case allAreNewer:
			newer = true
		}
		version := g.spec.version(newer)
		if layout == shuffled {
			version = g.versions[g.fault(len(g.versions))]
		}
		g.c.Servers = append(g.c.Servers, scenario.Server{Name: name, Version: version})
	}
	if g.chance(24) { // a server differs from the others from its first start on
		i := g.fault(n)
		g.c.Servers[i].Setup = g.setup(g.c.Servers[i].Version)
	}
	if g.chance(24) {
		i := g.fault(n)
		if all := g.partial[slices.Index(g.versions, g.c.Servers[i].Version)]; len(all) > 0 && g.c.Servers[i].Setup == nil {
			g.c.Servers[i].Version, g.reduces = all[g.fault(len(all))], true
		}
	}
	g.state.Reset(g.c.Servers)
	// Servers of one version forward nothing, so the case upgrades or downgrades them.
	g.rolling = layout == allAreOlder || layout == allAreNewer || g.chance(6)
	g.last = g.chance(2)
	g.upgrades = layout == allAreOlder || g.chance(2)
}

// versionAfter returns the version of a server after a number of steps, as its index among the
// versions.
func (g *Generator) versionAfter(steps, server int) int {
	version := g.c.Servers[server].Version
	for i := steps - 1; i >= 0; i-- {
		if s := &g.c.Steps[i]; s.Version != "" && s.Server == g.names[server] {
			version = s.Version
			break
		}
	}
	return slices.Index(g.versions, release.Of(version))
}

// version returns the version of a server after the steps so far, as its index among the versions.
func (g *Generator) version(server int) int { return g.versionAfter(len(g.c.Steps), server) }

// add appends a step if it is possible, and reports whether it was.
func (g *Generator) add(s scenario.Step) bool {
	if g.state.Apply(s) != nil {
		return false
	}
	g.c.Steps = append(g.c.Steps, s)
	return true
}

// soaks are the waits between steps. longSoaks are rare, because virtual time costs real time. A
// tape of zeros takes the first wait, which is longer than the staleness bound.
var (
	soaks = [...]time.Duration{
		6 * time.Second, 6 * time.Second, 6 * time.Second, 10 * time.Second, 3 * time.Second, 3 * time.Second, time.Second, time.Second,
		time.Second,
		300 * time.Millisecond, 100 * time.Millisecond, 10 * time.Millisecond, 0, 0, 0, 15 * time.Second,
	}
	longSoaks = [...]time.Duration{20 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}
	// graces are about as long as, or longer than, the time (5 minutes) for which upstream's proxy
	// keeps a deleted definition out of the resources of peers.
	graces = [...]time.Duration{6 * time.Minute, 5 * time.Minute, 11 * time.Minute}
)

// soak adds a wait before the next step, or nothing.
func (g *Generator) soak() {
	d := soaks[g.fault(len(soaks))]
	switch {
	case !g.chance(16):
	case !g.chance(32):
		d = longSoaks[g.fault(len(longSoaks))]
	case !g.chance(8):
		d = 10 * time.Minute
	default:
		d = time.Hour
	}
	d += d / 16 * time.Duration(g.fault(8))
	if d > 0 {
		g.add(scenario.Step{Action: scenario.Soak, For: d})
	}
}
