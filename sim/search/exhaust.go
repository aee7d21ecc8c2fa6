package search

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// These are the limits of an exhaustive search. It makes its schedules beforehand, in eight bytes
// each.
const (
	mostExhausted   = 3          // maximum number of servers
	MostEvents      = 6          // maximum number of events in a schedule
	mostSchedules   = 20_000_000 // maximum number of schedules in a search
	mostForAll      = 2          // maximum number of resources
	exhaustSoak     = 7 * time.Second
	exhaustAskAfter = 6 * time.Second // longer than the staleness bound
)

// Exhaust prepares a search of all schedules with up to the given number of events. There are 2 or
// 3 servers, of which the first has the newer version, and 1 or 2 resources. The campaign's Scope
// lists the possible events. 7 s pass after each event, and 6 s after it every resource is
// requested from every server. At the end everything is healed and started. 25 s later everything
// is requested again, with discovery. All choices of the tape are 0.
//
// No schedule is left out as equivalent to another: the servers differ in name and order, so
// equivalence cannot be proved. The number of schedules is also computed, and compared. The seed of
// a schedule is its place, counted from 1, with shorter schedules first. Options.First and
// Options.For are not used. The error says what is wrong with spec, events or options.
func Exhaust(spec Spec, events int, o Options) (*Search, error) {
	count, err := scopeSize(spec, events)
	if err != nil {
		return nil, err
	}
	gvrs, err := spec.GVRs()
	if err != nil {
		return nil, err
	}
	letters := alphabet(spec.Servers)
	all := enumerate(letters, events)
	if uint64(len(all)) != count {
		return nil, fmt.Errorf("%d schedules were made, and there are %d: this is a defect of skewproof", len(all), count)
	}
	o.First, o.For, o.Seeds = 1, 0, count
	s, err := newSearch(spec, o, reports.MethodAll, func() source { return &exhaustive{spec: spec, gvrs: gvrs, letters: letters, all: all} })
	if err != nil {
		return nil, err
	}
	s.scope = &reports.Scope{Events: events, Schedules: count}
	for _, l := range letters {
		s.scope.Alphabet = append(s.scope.Alphabet, l.words)
	}
	return s, nil
}

// scopeSize returns the number of schedules in a scope, or an error that says why not all of them
// can be run.
func scopeSize(spec Spec, events int) (uint64, error) {
	switch {
	case spec.Servers < 2 || spec.Servers > mostExhausted:
		return 0, fmt.Errorf("%d servers: every schedule can be run with 2 to %d", spec.Servers, mostExhausted)
	case spec.Resources < 1 || spec.Resources > mostForAll:
		return 0, fmt.Errorf("%d resources: every schedule can be run with 1 to %d", spec.Resources, mostForAll)
	case events < 1 || events > MostEvents:
		return 0, fmt.Errorf("%d events: every schedule can be run with 1 to %d", events, MostEvents)
	}
	count := countSchedules(spec.Servers, events)
	if count > mostSchedules {
		return 0, fmt.Errorf("there are %d schedules of up to %d events with %d servers: more than %d; take fewer", count, events, spec.Servers,
			mostSchedules)
	}
	return count, nil
}

// event is a letter of the alphabet. It stands for the first of its two steps that is possible, so
// the letter switches something on or off.
type event struct {
	words     string
	server    int // the server whose process the event is about, if any
	first, or scenario.Step
}

// alphabet returns the possible events with that number of servers.
func alphabet(servers int) []event {
	var all []event
	cut := func(from, to string) {
		label := from + "→" + to
		all = append(all, event{
			words: "cut " + label + ", or heal it",
			first: scenario.Step{Action: scenario.Inject, Label: label, Fault: &fault.Fault{Kind: fault.Cut, From: from, To: to}},
			or:    scenario.Step{Action: scenario.Heal, Label: label},
		})
	}
	for from := range servers {
		for to := range servers {
			if from != to {
				cut(scenario.ServerName(from), scenario.ServerName(to))
			}
		}
	}
	for from := range servers {
		cut(scenario.ServerName(from), fault.Etcd)
	}
	for _, of := range []struct {
		words     string
		first, or scenario.Action
	}{
		{"kill %s, or start it", scenario.Kill, scenario.Start},
		{"pause %s, or resume it", scenario.Pause, scenario.Resume},
		{"restart %s", scenario.Restart, scenario.Restart},
		{"replace %s by the other version", scenario.Replace, scenario.Replace},
	} {
		for server := range servers {
			name := scenario.ServerName(server)
			all = append(all, event{
				fmt.Sprintf(of.words, name), server, scenario.Step{Action: of.first, Server: name}, scenario.Step{Action: of.or, Server: name},
			})
		}
	}
	return append(all, event{
		words: "define a custom resource, or delete it",
		first: scenario.Step{Action: scenario.Undefine, Definition: &plainDefinitions[0]},
		or:    scenario.Step{Action: scenario.Define, Definition: &plainDefinitions[0]},
	})
}

// processes has the state of each server: paused, killed, or "" if it runs.
type processes [mostExhausted]scenario.Action

// after reports whether an event is possible, and returns the processes after it. [scenario.State]
// does the same, but too slowly for millions of schedules.
func (p processes) after(e *event) (processes, bool) {
	is := &p[e.server]
	switch of := e.first.Action; {
	case of == scenario.Kill && *is != of, of == scenario.Pause && *is == "":
		*is = of
	case of == scenario.Kill, of == scenario.Pause && *is == of:
		*is = ""
	case of == scenario.Pause, of == scenario.Restart, of == scenario.Replace:
		return p, *is == ""
	}
	return p, true
}

// enumerate makes all schedules: one letter in each byte, counted from 1, with the first event in
// the lowest byte.
func enumerate(letters []event, events int) []uint64 {
	var all []uint64
	var walk func(p processes, word uint64, length, at int)
	walk = func(p processes, word uint64, length, at int) {
		if at == length {
			all = append(all, word)
			return
		}
		for i := range letters {
			if next, ok := p.after(&letters[i]); ok {
				walk(next, word|uint64(i+1)<<(8*at), length, at+1)
			}
		}
	}
	for length := range events + 1 {
		walk(processes{}, 0, length, 0)
	}
	return all
}

// countSchedules counts the schedules without making them, from the numbers of running, paused and
// killed servers. Links and the custom resource can be switched at any time.
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
			n += c.running * (count(census{left, c.running - 1, c.paused + 1, c.killed}) +
				count(census{left, c.running - 1, c.paused, c.killed + 1}))
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
	state   scenario.State
}

// Case returns the case at a place. It is valid until the next call.
func (x *exhaustive) Case(place uint64) (*sim.Case, *tape.Tape) {
	x.c.Settled = true
	x.c.Servers, x.c.Steps, x.c.Requests = x.c.Servers[:0], x.c.Steps[:0], x.c.Requests[:0]
	newer := [mostExhausted]bool{true}
	for i := range x.spec.Servers {
		x.c.Servers = append(x.c.Servers, scenario.Server{Name: scenario.ServerName(i), Version: x.spec.version(newer[i])})
	}
	x.state.Reset(x.c.Servers)
	for word := x.all[place-1]; word > 0; word >>= 8 {
		e := &x.letters[word&0xff-1]
		step := e.first
		if step.Action == scenario.Replace {
			newer[e.server] = !newer[e.server]
			step.Version = x.spec.version(newer[e.server])
		}
		if x.state.Apply(step) != nil {
			step = e.or
			if err := x.state.Apply(step); err != nil {
				panic(err) // cannot happen: enumerate makes only possible schedules
			}
		}
		x.c.Steps = append(x.c.Steps, step)
		x.ask(exhaustAskAfter)
		x.c.Steps = append(x.c.Steps, scenario.Step{Action: scenario.Soak, For: exhaustSoak})
	}
	x.c.Steps = append(x.c.Steps, x.recover()...)
	x.c.Steps = append(x.c.Steps, scenario.Step{Action: scenario.Outlast, For: Bounds.Convergence + margin})
	x.ask(0)
	for i := range x.spec.Servers {
		x.c.Requests = append(x.c.Requests, sim.Request{
			Step: len(x.c.Steps), Server: scenario.ServerName(i), Request: workload.Request{Verb: history.VerbDiscovery, Path: "/apis"},
		})
	}
	return &x.c, &tape.Tape{}
}

// recover returns the steps that first heal every link and then start or resume every server, in
// the order of their names.
func (x *exhaustive) recover() []scenario.Step {
	steps := slices.DeleteFunc(x.state.Undo(), func(s scenario.Step) bool { return s.Action == scenario.Undefine })
	slices.SortFunc(steps, func(a, b scenario.Step) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Label, b.Label))
	})
	return steps
}

// ask adds requests to every server for every resource, some time after the last step.
func (x *exhaustive) ask(after time.Duration) {
	for i := range x.spec.Servers {
		for _, gvr := range x.gvrs {
			x.c.Requests = append(x.c.Requests, sim.Request{
				Step: len(x.c.Steps), After: after, Server: scenario.ServerName(i), Request: workload.Request{Verb: "list", GVR: gvr},
			})
		}
	}
}
