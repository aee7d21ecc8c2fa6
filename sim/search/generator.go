package search

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
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
	spec    Spec
	names   []string
	targets targets

	// The case that is being made. Its memory is used again for the next one.
	tape    *tape.Tape
	c       sim.Case
	state   scenario.State  // after the steps so far
	faults  []fault.Fault   // to which steps point, maxFaults at most
	undoing []scenario.Step // see healing

	rolling   bool // servers are replaced one after the other,
	last      bool // the last one first
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
	g := &Generator{spec: spec, tape: &tape.Tape{}, faults: make([]fault.Fault, 0, maxFaults)}
	var err error
	if g.targets, err = newTargets(spec); err != nil {
		return nil, err
	}
	for i := range spec.Servers {
		g.names = append(g.names, scenario.ServerName(i))
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
	g.faults = g.faults[:0]
}

// Layouts of versions. There are few, since a simulator brings up each combination of versions only
// once.
const (
	firstIsNewer = iota // as in the scenarios
	firstIsOlder
	halfAreNewer
	everyOtherIsNewer
	allAreOlder // to be upgraded
	allAreNewer // after an upgrade
	layouts
)

// assignVersions chooses the version that each server begins with.
func (g *Generator) assignVersions() {
	layout := firstIsNewer
	if g.chance(2) {
		layout = g.fault(layouts)
	}
	n := g.spec.Servers
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
		g.c.Servers = append(g.c.Servers, scenario.Server{Name: name, Version: g.spec.version(newer)})
	}
	g.state.Reset(g.c.Servers)
	// Servers of one version forward nothing, so they are upgraded or downgraded.
	g.rolling = layout == allAreOlder || layout == allAreNewer || g.chance(6)
	g.last = g.chance(2)
}

// versionAfter is the version of a server after so many steps.
func (g *Generator) versionAfter(steps, server int) string {
	for i := steps - 1; i >= 0; i-- {
		if s := &g.c.Steps[i]; s.Version != "" && s.Server == g.names[server] {
			return s.Version
		}
	}
	return g.c.Servers[server].Version
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
