package search

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// DefaultShrinkRuns is the default maximum number of runs to shrink one case. Most cases need less
// than two hundred.
const DefaultShrinkRuns = 1000

// Shrink looks for the smallest case with the violation want, which known helps to identify: fewer
// requests, steps, servers and resources, simpler faults, rounder times, a tape of zeros. It ends
// after the given number of runs, or with ctx, and returns the smallest case so far. It is an error
// if the given case on the given tape does not have the violation. The result is deterministic
// unless ctx ends.
func Shrink(
	ctx context.Context, spec Spec, c sim.Case, on [tape.Streams][]uint32, want reports.CampaignFinding, known findings.Catalogue, runs int,
) (*Repro, error) {
	s := &shrinker{ctx: ctx, want: want, known: known, left: runs}
	var err error
	if s.invariant, err = invariantNamed(want.Invariant); err != nil {
		return nil, err
	}
	first := candidate{spec: spec, Case: clone(c), tape: on}
	if s.sim, err = newSimulator(spec); err != nil {
		return nil, err
	}
	defer func() { s.sim.Close() }()
	if s.left++; !s.try(first) {
		return nil, fmt.Errorf("shrink: the case does not show %s", want.ViolationKind)
	}
	for smaller := true; smaller && s.left > 0; {
		before := s.taken
		s.shrinkTape()
		s.shrinkRequests()
		s.shrinkSteps()
		s.shrinkServers()
		s.shrinkResources()
		s.plainSteps()
		s.plainRequests()
		s.roundTimes()
		smaller = s.taken > before
	}
	return s.repro(), nil
}

// shrinker holds the smallest case so far.
type shrinker struct {
	ctx       context.Context
	want      reports.CampaignFinding
	known     findings.Catalogue
	invariant invariant.Invariant
	sim       *sim.Simulator // of best's spec
	// shows, if set, replaces the simulator: it says whether a case shows the violation.
	shows func(sim.Case) bool
	left  int // number of runs left
	taken int // number of changes that were kept

	best  candidate
	found Violation // in best
	hash  uint64
}

func invariantNamed(name string) (invariant.Invariant, error) {
	for _, i := range invariant.All() {
		if i.Name == name {
			return i, nil
		}
	}
	return invariant.Invariant{}, fmt.Errorf("there is no invariant %q", name)
}

// newSimulator makes a simulator of a spec.
func newSimulator(spec Spec) (*sim.Simulator, error) {
	setup, err := spec.Setup()
	if err != nil {
		return nil, err
	}
	return sim.New(setup), nil
}

// try runs a candidate of best's spec, and keeps it if it has the same violation.
func (s *shrinker) try(c candidate) bool { return s.tryOn(s.sim, c) }

func (s *shrinker) tryOn(simulator *sim.Simulator, c candidate) bool {
	if s.left <= 0 || s.ctx.Err() != nil || c.Validate() != nil {
		return false
	}
	s.left--
	if s.shows != nil {
		if s.shows(c.Case) {
			s.best = c
			s.taken++
			return true
		}
		return false
	}
	result, err := simulator.Run(&c.Case, tape.Of(c.tape), sim.Options{Run: c.spec.history(0)})
	if err != nil {
		return false
	}
	verdict := s.invariant.Judge(invariant.NewFacts(result.History))
	for _, v := range Violations(s.known, []invariant.Verdict{verdict}) {
		if v.ViolationKind == s.want.ViolationKind {
			s.best, s.found, s.hash = c, v, result.Hash
			s.taken++
			return true
		}
	}
	return false
}

// repro returns the smallest case.
func (s *shrinker) repro() *Repro {
	r := &Repro{
		Schema: ReproSchema, Spec: s.best.spec, Invariant: s.want.Invariant, Cause: s.found.Cause, Signature: s.found.Signature,
		Sentence: s.found.Sentence,
		Case:     s.best.Case, Hash: HashText(s.hash),
	}
	for stream := range tape.Streams {
		if record := s.best.tape[stream]; len(record) > 0 {
			if r.Tape == nil {
				r.Tape = map[string][]uint32{}
			}
			r.Tape[stream.String()] = record
		}
	}
	return r
}

// change returns a copy of best with a change.
func (s *shrinker) change(do func(c *candidate)) candidate {
	c := s.best
	c.Case = clone(c.Case)
	do(&c)
	return c
}

// without tries to remove ranges of a list: large ones first, from the end (Zeller and Hildebrandt,
// "Simplifying and Isolating Failure-Inducing Input", 2002). count returns the present length of
// the list.
func (s *shrinker) without(count func() int, drop func(c *candidate, from, to int)) {
	for size := (count() + 1) / 2; size > 0; size /= 2 {
		for to := count(); to > 0; to = min(to-size, count()) {
			from := max(0, to-size)
			s.try(s.change(func(c *candidate) { drop(c, from, to) }))
		}
	}
}

// shrinkTape sets choices of the tape to 0: all of them, those of one stream, or some.
func (s *shrinker) shrinkTape() {
	if !slices.ContainsFunc(s.best.tape[:], func(r []uint32) bool { return len(r) > 0 }) {
		return
	}
	if s.try(s.change(func(c *candidate) { c.tape = [tape.Streams][]uint32{} })) {
		return
	}
	for stream := range tape.Streams {
		if len(s.best.tape[stream]) == 0 || s.try(s.change(func(c *candidate) { c.tape[stream] = nil })) {
			continue
		}
		smallest := len(s.best.tape[stream]) / 32 // above this, shrinking takes many runs and gains little
		s.without(func() int {
			if s.left <= 0 {
				return 0
			}
			return len(s.best.tape[stream])
		}, func(c *candidate, from, to int) {
			if to-from < smallest {
				return
			}
			record := slices.Clone(c.tape[stream])
			clear(record[from:to])
			for len(record) > 0 && record[len(record)-1] == 0 {
				record = record[:len(record)-1]
			}
			c.tape[stream] = record
		})
	}
}

func (s *shrinker) shrinkRequests() {
	s.without(func() int { return len(s.best.Requests) },
		func(c *candidate, from, to int) { c.Requests = slices.Delete(c.Requests, from, to) })
}

func (s *shrinker) shrinkSteps() {
	s.without(func() int { return len(s.best.Steps) }, func(c *candidate, from, to int) {
		c.drop(func(i int) bool { return i >= from && i < to })
	})
}

// shrinkServers removes servers, and makes the case begin with a settled control plane.
func (s *shrinker) shrinkServers() {
	for i := len(s.best.Servers) - 1; i >= 0 && len(s.best.Servers) > 1; i-- {
		s.try(s.change(func(c *candidate) { c.leave(c.Servers[i].Name) }))
	}
	if !s.best.Settled {
		s.try(s.change(func(c *candidate) { c.Settled = true }))
	}
}

// shrinkResources reduces the served resources to the first ones of the spec.
func (s *shrinker) shrinkResources() {
	all, err := s.best.spec.GVRs()
	if err != nil {
		return
	}
	for n := 1; n < len(all) && n <= 8; n++ {
		c := s.change(func(c *candidate) { c.spec.Resources = n })
		simulator, err := newSimulator(c.spec)
		if err != nil {
			return
		}
		if s.tryOn(simulator, c) {
			s.sim.Close()
			s.sim = simulator
			return
		}
		simulator.Close()
	}
}

// shrinkAll shrinks every finding, several at once. When ctx ends, the remaining findings stay as
// they are.
func (s *Search) shrinkAll(ctx context.Context, c *reports.Campaign) {
	if len(c.Findings) == 0 {
		return
	}
	var next, shrunk atomic.Int64
	s.inParallel(func(int) {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(c.Findings) {
				return
			}
			s.shrinkOne(ctx, &c.Findings[i])
			shrunk.Add(1)
		}
	}, func() Progress { return Progress{Shrunk: int(shrunk.Load()), ToShrink: len(c.Findings)} })
	slices.SortStableFunc(c.Findings, reports.CampaignFinding.Compare) // by the causes
	nameRepros(c)
}

// nameRepros names the repro files.
func nameRepros(c *reports.Campaign) {
	names := map[string]int{}
	for i := range c.Findings {
		f := &c.Findings[i]
		f.File = ""
		if f.Repro != nil {
			names[f.Invariant]++
			f.File = fmt.Sprintf("%s-%d.json", f.Invariant, names[f.Invariant])
		}
	}
}

// shrinkOne makes the repro of one finding. If the run panics, the finding has no repro.
func (s *Search) shrinkOne(ctx context.Context, f *reports.CampaignFinding) {
	defer func() { _ = recover() }() // the seed is enough to find it again
	runs := s.options.ShrinkRuns
	if ctx.Err() != nil || runs < 0 {
		ctx, runs = context.WithoutCancel(ctx), 0
	}
	c, on, err := s.recorded(f.Seed)
	if err != nil {
		return
	}
	repro, err := Shrink(ctx, s.spec, *c, on, *f, s.options.Findings, runs)
	if err != nil {
		return
	}
	repro.Seed, repro.Commit = f.Seed, s.options.Version
	if runs > 0 && s.options.CauseRuns > 0 {
		s.explain(ctx, f, repro)
	}
	if f.Repro, err = repro.Encode(); err != nil {
		return
	}
	f.Sentence = repro.Sentence
	f.Story, f.Disturbances = Story(&repro.Case)
	f.Shrunk = runs > 0 && ctx.Err() == nil
}

// explain finds out which switches remove a shrunk violation. After an error the cause stays
// unknown.
func (s *Search) explain(ctx context.Context, f *reports.CampaignFinding, r *Repro) {
	removal, err := Removal(ctx, r.Spec, r.Case, r.records(), *f, s.options.Findings, s.options.CauseRuns)
	if err != nil {
		removal = &reports.Removal{To: proxy.Reference().Name, Unknown: err.Error()}
	}
	f.Removal, r.Removal = removal, removal
}

// recorded returns the case of a seed with the choices that its run made.
func (s *Search) recorded(seed uint64) (*sim.Case, [tape.Streams][]uint32, error) {
	c, t := s.source().Case(seed)
	t.Record(true)
	simulator := sim.New(s.setup)
	defer simulator.Close()
	_, err := simulator.Run(c, t, sim.Options{Run: s.spec.history(seed)})
	return c, t.Recorded(), err
}
