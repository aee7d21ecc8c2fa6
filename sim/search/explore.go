package search

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// Options are how much of a search is done, and how.
type Options struct {
	// First is the first seed; 0 is 1.
	First uint64
	// Seeds is how many schedules are run, over all shards; 0: as many as there is time for.
	Seeds uint64
	// For is for how long; 0: until Seeds are run. One of both must be set.
	For time.Duration
	// Workers is how many schedules are run at once, [MaxWorkers] at most; 0 is the number of processors.
	Workers int
	// Shard of Shards is the part that is searched, from 1: every Shards-th seed, [MaxShards] at most. 0 of 0 is all.
	Shard, Shards int
	// Strict lets extended invariants count like core ones.
	Strict bool
	// Progress, if set, is told once a second how far the search is.
	Progress func(Progress)
	// ShrinkRuns is how many runs the shrinking of one violation may take; 0 is DefaultShrinkRuns, less than 0: nothing is shrunk.
	ShrinkRuns int
	// Version and Machine are what the campaign says of the program and of where it ran.
	Version, Machine string
}

// MaxWorkers bounds how many schedules are run at once: each worker has two simulators.
const MaxWorkers = 1024

func (o Options) check() error {
	switch {
	case o.Seeds == 0 && o.For <= 0:
		return errors.New("neither a number of schedules nor a time is given: the search would never end")
	case o.For < 0:
		return fmt.Errorf("a time of %s: want more than 0", o.For)
	case o.Workers < 0 || o.Workers > MaxWorkers:
		return fmt.Errorf("%d workers: want 1 to %d", o.Workers, MaxWorkers)
	case o.Shards < 0 || o.Shard < 0 || o.Shard > o.Shards || o.Shards > 0 && o.Shard == 0 || o.Shards > MaxShards:
		return fmt.Errorf("shard %d of %d: want 1 of 1 up to N of N, with N up to %d", o.Shard, o.Shards, MaxShards)
	}
	return nil
}

// withDefaults fills in what zero stands for.
func (o Options) withDefaults() Options {
	o.First, o.Shard, o.Shards = max(o.First, 1), max(o.Shard, 1), max(o.Shards, 1)
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), MaxWorkers)
	}
	if o.ShrinkRuns == 0 {
		o.ShrinkRuns = DefaultShrinkRuns
	}
	return o
}

// Explore runs cases of random seeds and judges them by every invariant. What it finds stops it as little as a few panics do: only ctx, the number
// of schedules, the time and a hundred panics in each worker end it, and in each case it returns what it has found until then. One violation of each signature is shrunk.
// An error means that it could not begin.
func Explore(ctx context.Context, spec Spec, o Options) (*Campaign, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if _, err := NewGenerator(spec); err != nil {
		return nil, err
	}
	return newSearch(spec, o.withDefaults(), MethodRandom, func() source {
		g, _ := NewGenerator(spec) // as above
		return g
	}).run(ctx)
}

// source makes the cases of a campaign. Each worker has one.
type source interface {
	Case(seed uint64) (*sim.Case, *tape.Tape)
}

// search is a campaign under way.
type search struct {
	spec    Spec
	options Options
	method  Method
	scope   *Scope
	source  func() source
	setup   sim.Setup

	claimed atomic.Uint64 // batches
	began   time.Time
	ends    time.Time // zero: when all is run
	workers []*worker
}

func newSearch(spec Spec, o Options, method Method, source func() source) *search {
	return &search{spec: spec, options: o, method: method, source: source}
}

// batch is how many schedules a worker claims at once. It finishes what it has claimed, so that no seed is left out between others.
const batch = 16

// claim returns the places of the schedules that are to be run next, counted over this shard.
func (s *search) claim(ctx context.Context) (from, to uint64, ok bool) {
	if ctx.Err() != nil || !s.ends.IsZero() && time.Now().After(s.ends) {
		return 0, 0, false
	}
	from = (s.claimed.Add(1) - 1) * batch
	to = from + batch
	if s.options.Seeds > 0 {
		to = min(to, s.share())
	}
	return from, to, from < to
}

// share is how many schedules are this shard's.
func (s *search) share() uint64 {
	o := s.options
	return (o.Seeds + uint64(o.Shards) - uint64(o.Shard)) / uint64(o.Shards)
}

// seed is that of a place of this shard.
func (s *search) seed(place uint64) uint64 {
	o := s.options
	return o.First + place*uint64(o.Shards) + uint64(o.Shard-1)
}

func (s *search) run(ctx context.Context) (*Campaign, error) {
	var err error
	if s.setup, err = s.spec.Setup(); err != nil {
		return nil, err
	}
	s.began = time.Now()
	if s.options.For > 0 {
		s.ends = s.began.Add(s.options.For)
	}
	for len(s.workers) < s.options.Workers && ctx.Err() == nil { // each takes a while
		s.workers = append(s.workers, newWorker(s))
	}
	s.atOnce(func(i int) {
		if i < len(s.workers) {
			s.workers[i].run(ctx)
		}
	}, s.progress)
	c := s.campaign(time.Since(s.began))
	s.shrinkAll(ctx, c)
	c.conclude()
	return c, nil
}

// atOnce does something in as many goroutines as there are workers, and tells once a second, and at the end, how far it is.
func (s *search) atOnce(do func(i int), progress func() Progress) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for i := range s.options.Workers {
		all.Go(func() { do(i) })
	}
	go func() {
		all.Wait()
		close(done)
	}()
	if s.options.Progress == nil {
		<-done
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			s.options.Progress(progress())
			return
		case <-tick.C:
			s.options.Progress(progress())
		}
	}
}

// campaign puts together what the workers have found.
func (s *search) campaign(elapsed time.Duration) *Campaign {
	o := s.options
	t := s.total()
	c := &Campaign{
		APIVersion: CampaignVersion, Kind: CampaignKind, SkewproofVersion: o.Version, Spec: s.spec, Method: s.method, Scope: s.scope,
		FirstSeed: o.First, Wanted: o.Seeds, Of: o.Shards, Strict: o.Strict,
		Shards:     []Shard{{Index: o.Shard, Schedules: t.schedules, ElapsedSeconds: secondsOf(elapsed), Workers: o.Workers, Machine: o.Machine}},
		Complete:   o.Seeds > 0 && t.schedules == s.share() || o.Seeds == 0 && elapsed >= o.For,
		Invariants: t.invariants(), Findings: t.findings(), Checks: t.checks, Troubles: t.troubleList(), PassedOn: t.reached[sim.ReachedProxied], Judged: t.judged,
		TracesSketch: t.traces, ShapesSketch: t.shapes,
	}
	impossible := s.spec.impossible()
	for _, state := range sim.States() {
		c.Reached = append(c.Reached, Reach{State: state.String(), Schedules: t.reached[state], Impossible: impossible[state]})
	}
	c.sum()
	return c
}

// sum works out what follows from the shards and the sketches.
func (c *Campaign) sum() {
	c.Schedules, c.ElapsedSeconds, c.SchedulesPerSecond = 0, 0, 0
	for _, s := range c.Shards {
		c.Schedules += s.Schedules
		c.ElapsedSeconds = max(c.ElapsedSeconds, s.ElapsedSeconds)
		if s.ElapsedSeconds > 0 {
			c.SchedulesPerSecond += float64(s.Schedules) / s.ElapsedSeconds
		}
	}
	c.Traces, c.Shapes = min(c.TracesSketch.Count(), c.Schedules), min(c.ShapesSketch.Count(), c.Schedules)
}
