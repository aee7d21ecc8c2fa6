package search

import (
	"context"
	"fmt"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// What an exhaustive search is bounded by. Schedules are made beforehand, eight bytes each.
const (
	mostExhausted   = 3          // servers
	MostEvents      = 6          // of a schedule
	MostSchedules   = 20_000_000 // of a search
	mostForAll      = 2          // resources
	exhaustSoak     = 7 * time.Second
	exhaustAskAfter = 6 * time.Second // longer than ignorance is excused
)

// Exhaust runs every schedule of up to so many events: 2 or 3 servers, of which the first is of the newer version, 1 or 2 resources, and the events
// of the alphabet that the campaign's Scope lists. After each event there are 7 s, and 6 s after it every server is asked for every resource. In
// the end everything is healed and started, and 25 s later every server is asked again, for discovery too. All choices of the tape are
// the healthiest.
//
// No schedule is left out for being like another: servers are told apart by name and order, so that it cannot be proved that two that look alike
// come to the same. How many there are is counted without making them and compared. Seeds are the places of schedules, from 1, the
// shorter ones first. Options.First and Options.For are not used.
func Exhaust(ctx context.Context, spec Spec, events int, o Options) (*Campaign, error) {
	if err := CheckScope(spec, events); err != nil {
		return nil, err
	}
	count := countSchedules(spec.Servers, events)
	o.First, o.For, o.Seeds = 1, 0, count
	if err := o.check(); err != nil {
		return nil, err
	}
	gvrs, err := spec.GVRs()
	if err != nil {
		return nil, err
	}
	letters := alphabet(spec.Servers)
	all := enumerate(spec.Servers, letters, events)
	if uint64(len(all)) != count {
		return nil, fmt.Errorf("%d schedules were made, and there are %d: this is a defect of skewproof", len(all), count)
	}
	s := newSearch(spec, o.withDefaults(), MethodAll, func() source { return &exhaustive{spec: spec, gvrs: gvrs, letters: letters, all: all} })
	s.scope = &Scope{Events: events, Schedules: count}
	for _, l := range letters {
		s.scope.Alphabet = append(s.scope.Alphabet, l.String())
	}
	return s.run(ctx)
}

// CheckScope reports why every schedule cannot be run.
func CheckScope(spec Spec, events int) error {
	switch {
	case spec.Servers < 2 || spec.Servers > mostExhausted:
		return fmt.Errorf("%d servers: every schedule can be run with 2 to %d", spec.Servers, mostExhausted)
	case spec.Resources < 1 || spec.Resources > mostForAll:
		return fmt.Errorf("%d resources: every schedule can be run with 1 to %d", spec.Resources, mostForAll)
	case events < 1 || events > MostEvents:
		return fmt.Errorf("%d events: every schedule can be run with 1 to %d", events, MostEvents)
	}
	if count := countSchedules(spec.Servers, events); count > MostSchedules {
		return fmt.Errorf("there are %d schedules of up to %d events with %d servers: more than %d; take fewer", count, events, spec.Servers, MostSchedules)
	}
	return nil
}

// enumerate makes every schedule: one letter in each byte, counted from 1, the first event in the lowest.
func enumerate(servers int, letters []event, events int) []uint64 {
	var all []uint64
	var walk func(s stage, word uint64, length, at int)
	walk = func(s stage, word uint64, length, at int) {
		if at == length {
			all = append(all, word)
			return
		}
		for i, e := range letters {
			if next, ok := s.possible(e); ok {
				walk(next, word|uint64(i+1)<<(8*at), length, at+1)
			}
		}
	}
	for length := range events + 1 {
		walk(firstStage(servers), 0, length, 0)
	}
	return all
}

// firstStage is a healthy control plane in which one server is of the newer version.
func firstStage(int) stage {
	var s stage
	s.newer[0] = true
	return s
}

// countSchedules counts without making any: of a server only matters whether it runs, is paused or is killed, and links and the custom
// resource can always be switched.
func countSchedules(servers, events int) uint64 {
	type census struct{ events, running, paused, killed uint64 }
	switches := uint64(servers*(servers-1) + servers + 1)
	known := map[census]uint64{}
	var count func(c census) uint64
	count = func(c census) uint64 {
		if c.events == 0 {
			return 1
		}
		if n, ok := known[c]; ok {
			return n
		}
		left := c.events - 1
		n := (switches + 2*c.running) * count(census{left, c.running, c.paused, c.killed}) // restart, replace
		if c.running > 0 {
			n += c.running * (count(census{left, c.running - 1, c.paused + 1, c.killed}) + count(census{left, c.running - 1, c.paused, c.killed + 1}))
		}
		if c.paused > 0 {
			n += c.paused * (count(census{left, c.running + 1, c.paused - 1, c.killed}) + count(census{left, c.running, c.paused - 1, c.killed + 1}))
		}
		if c.killed > 0 {
			n += c.killed * count(census{left, c.running + 1, c.paused, c.killed - 1})
		}
		known[c] = n
		return n
	}
	sum := uint64(0)
	for length := range events + 1 {
		sum += count(census{uint64(length), uint64(servers), 0, 0})
	}
	return sum
}

// exhaustive makes the cases of an exhaustive search.
type exhaustive struct {
	spec    Spec
	gvrs    []history.GVR
	letters []event
	all     []uint64
	c       sim.Case
}

// Case makes the case of a place. It holds until the next call.
func (x *exhaustive) Case(place uint64) (*sim.Case, *tape.Tape) {
	x.c.Settled = true
	x.c.Servers, x.c.Steps, x.c.Requests = x.c.Servers[:0], x.c.Steps[:0], x.c.Requests[:0]
	s := firstStage(x.spec.Servers)
	for i := range x.spec.Servers {
		x.c.Servers = append(x.c.Servers, scenario.Server{Name: scenario.ServerName(i), Version: x.version(s.newer[i])})
	}
	for word := x.all[place-1]; word > 0; word >>= 8 {
		e := x.letters[word&0xff-1]
		x.c.Steps = append(x.c.Steps, s.step(e, x.version))
		s, _ = s.possible(e)
		x.ask(exhaustAskAfter)
		x.c.Steps = append(x.c.Steps, scenario.Step{Action: scenario.Soak, For: exhaustSoak})
	}
	x.c.Steps = append(x.c.Steps, s.mend(x.spec.Servers)...)
	x.c.Steps = append(x.c.Steps, scenario.Step{Action: scenario.Outlast, For: Bounds.Convergence + margin})
	x.ask(0)
	for i := range x.spec.Servers {
		x.c.Requests = append(x.c.Requests, sim.Request{Step: len(x.c.Steps), Server: scenario.ServerName(i), Request: workload.Request{Verb: history.VerbDiscovery, Path: "/apis"}})
	}
	return &x.c, &tape.Tape{}
}

func (x *exhaustive) version(newer bool) string {
	if newer {
		return x.spec.To
	}
	return x.spec.From
}

// ask asks every server for every resource, a while after the last step.
func (x *exhaustive) ask(after time.Duration) {
	for i := range x.spec.Servers {
		for _, gvr := range x.gvrs {
			x.c.Requests = append(x.c.Requests, sim.Request{
				Step: len(x.c.Steps), After: after, Server: scenario.ServerName(i), Request: workload.Request{Verb: "list", GVR: gvr},
			})
		}
	}
}
