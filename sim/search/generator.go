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
// versions, servers, resources and requests, not on its policy: so policies can be compared on the
// same seeds. A Generator is not safe for concurrent use.
//
// A case is a swarm (Groce et al., "Swarm Testing", 2012): its seed first draws which kinds of
// faults it has, since some faults hide what others show. A tape of zeros gives a case without
// disturbances.
type Generator struct {
	spec        Spec
	versions    []string   // oldest first
	minors      []string   // of the versions
	partial     [][]string // of each version, what is left with some of its APIs switched off
	all         []string   // the names of as many servers as a case can have
	definitions []scenario.Definition
	targets     targets

	// The case that is being made. Its memory is used again for the next one.
	tape    *tape.Tape
	c       sim.Case
	names   []string         // of its servers
	state   scenario.State   // after the steps so far
	faults  []fault.Fault    // to which steps point, maxFaults at most
	setups  []scenario.Setup // to which steps and servers point, maxSetups at most
	undoing []scenario.Step  // see healing

	rolling   bool // servers are replaced one after the other,
	last      bool // the last one first
	upgrades  bool // they all become the newest version
	defines   bool // something is defined
	reduces   bool // a server has an API switched off
	discovers bool // discovery is requested too
	first     int  // the step that disturbs first; before it all is quiet
	heals     int  // the step from which on all is healed
	ends      int  // the step after which all must be right
}

// NewGenerator checks the spec and prepares for it.
func NewGenerator(spec Spec) (*Generator, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	g := &Generator{spec: spec, versions: spec.versions(), tape: &tape.Tape{}, faults: make([]fault.Fault, 0, maxFaults), setups: make([]scenario.Setup, 0, maxSetups)}
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

// Case makes the case of a seed and the tape that it is to be run on. Both are valid until the next
// call.
func (g *Generator) Case(seed uint64) (*sim.Case, *tape.Tape) {
	g.tape.Reset(seed)
	g.draw()
	g.tape.Reset(seed) // the record of the run begins without the choices of the case
	return &g.c, g.tape
}

// draw makes a case by the choices of the tape.
func (g *Generator) draw() {
	g.clear()
	g.assignVersions()
	g.disturb()
	g.recover()
	g.addRequests()
}

// chance is a choice of faults that is true once in n, and never on a tape of zeros.
func (g *Generator) chance(n int) bool { return g.tape.OneIn(tape.Faults, n) }

// fault is a choice of faults among n.
func (g *Generator) fault(n int) int { return g.tape.Choose(tape.Faults, n) }

// work is a choice of the workload among n.
func (g *Generator) work(n int) int { return g.tape.Choose(tape.Workload, n) }

// clear empties the case.
func (g *Generator) clear() {
	g.c.Servers, g.c.Steps, g.c.Requests = g.c.Servers[:0], g.c.Steps[:0], g.c.Requests[:0]
	g.c.Settled = !g.chance(10)
	g.faults, g.setups, g.defines, g.reduces = g.faults[:0], g.setups[:0], false, false
	g.names = g.all
	if g.spec.Servers == 0 {
		g.names = g.all[:serverCounts[g.fault(len(serverCounts))]]
	}
}

// serverCounts are the numbers of servers that a case may have where the spec gives none. If one of two
// servers leaves, there is no peer, so two are a case of their own.
var serverCounts = [...]int{3, 3, 3, 3, 2, 2, 2, 4, 5, 1}

// Layouts of versions. There are few, since a simulator brings up each combination of versions only
// once.
const (
	firstIsNewer = iota // as in the scenarios
	firstIsOlder
	halfAreNewer
	everyOtherIsNewer
	allAreOlder // to be upgraded
	allAreNewer // after an upgrade
	shuffled
	layouts
)

// assignVersions chooses the version that each server begins with.
func (g *Generator) assignVersions() {
	layout := firstIsNewer
	if g.chance(2) {
		layout = g.fault(layouts)
	}
	n := len(g.names)
	if n > mostDrawn && layout == shuffled {
		layout = halfAreNewer // a simulator keeps what it brings up
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
	if g.chance(24) { // a server that differs from its first start on
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
	// Servers of one version forward nothing, so they are upgraded or downgraded.
	g.rolling = layout == allAreOlder || layout == allAreNewer || g.chance(6)
	g.last = g.chance(2)
	g.upgrades = layout == allAreOlder || g.chance(2)
}

// versionAfter is the version of a server after so many steps, as its place among the versions.
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

// add appends a step if it is possible, and reports whether it is.
func (g *Generator) add(s scenario.Step) bool {
	if g.state.Apply(s) != nil {
		return false
	}
	g.c.Steps = append(g.c.Steps, s)
	return true
}

// soaks are the waits between steps. longSoaks are rare, since virtual time costs real time. The
// first one, which a tape of zeros takes, is longer than the staleness bound.
var (
	soaks = [...]time.Duration{
		6 * time.Second, 6 * time.Second, 6 * time.Second, 10 * time.Second, 3 * time.Second, 3 * time.Second, time.Second, time.Second, time.Second,
		300 * time.Millisecond, 100 * time.Millisecond, 10 * time.Millisecond, 0, 0, 0, 15 * time.Second,
	}
	longSoaks = [...]time.Duration{20 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}
	// graces are around and above the time for which upstream's proxy goes on to keep a deleted
	// definition out of what peers serve (5 minutes).
	graces = [...]time.Duration{6 * time.Minute, 5 * time.Minute, 11 * time.Minute}
)

// soak adds a wait before the next step, or none.
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
