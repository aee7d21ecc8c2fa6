package search

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// Options say how long a search runs, and how.
type Options struct {
	// First is the first seed; 0 is 1.
	First uint64
	// Seeds is the number of schedules; 0: as many as there is time for.
	Seeds uint64
	// For is the duration; 0: until Seeds are run. Either Seeds or For must be set.
	For time.Duration
	// Workers is the number of schedules that run at once, at most [MaxWorkers]; 0 is the number of
	// processors.
	Workers int
	// Strict makes extended invariants count like core ones.
	Strict bool
	// Findings explain violations; nil: the findings of the repository about this policy.
	Findings findings.Catalogue
	// Progress, if set, is called once a second.
	Progress func(Progress)
	// ShrinkRuns is the maximum number of runs to shrink one violation; 0 is DefaultShrinkRuns, and
	// below 0 nothing is shrunk.
	ShrinkRuns int
	// CauseRuns is the maximum number of runs to find out what removes one shrunk violation; 0 is
	// DefaultCauseRuns, and below 0 the search does not try.
	CauseRuns int
	// Version and Machine are the descriptions, in the campaign, of the program and of the machine.
	Version, Machine string
}

// MaxWorkers limits the schedules that run at once, because each worker has two simulators.
const MaxWorkers = 1024

// check reports errors by the names of the flags.
func (o Options) check() error {
	switch {
	case o.Seeds == 0 && o.For <= 0:
		return errors.New("neither --seeds nor --for is given: the search would never end")
	case o.For < 0:
		return fmt.Errorf("--for %s: want more than 0", o.For)
	case o.Workers < 0 || o.Workers > MaxWorkers:
		return fmt.Errorf("--workers %d: want 1 to %d, or 0 for one for each processor", o.Workers, MaxWorkers)
	}
	return nil
}

// withDefaults replaces zero values by the defaults.
func (o Options) withDefaults() Options {
	o.First = max(o.First, 1)
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), MaxWorkers)
	}
	if o.ShrinkRuns == 0 {
		o.ShrinkRuns = DefaultShrinkRuns
	}
	if o.CauseRuns == 0 {
		o.CauseRuns = DefaultCauseRuns
	}
	return o
}

// Search is a campaign, to be run once.
type Search struct {
	spec    Spec
	options Options
	method  reports.Method
	scope   *reports.Scope
	source  func() source
	setup   sim.Setup

	claimed atomic.Uint64 // batches
	began   time.Time
	ends    time.Time // zero: at the end of all schedules
	workers []*worker
}

// source makes the cases of a campaign. Each worker has its own.
type source interface {
	Case(seed uint64) (*sim.Case, *tape.Tape)
}

// Explore prepares a search of random schedules. The error says what is wrong with the spec or the
// options.
func Explore(spec Spec, o Options) (*Search, error) {
	if _, err := NewGenerator(spec); err != nil {
		return nil, err
	}
	return newSearch(spec, o, reports.MethodRandom, func() source {
		g, _ := NewGenerator(spec) // as above
		return g
	})
}

func newSearch(spec Spec, o Options, method reports.Method, source func() source) (*Search, error) {
	setup, err := spec.Setup()
	if err != nil {
		return nil, err
	}
	full := o.withDefaults()
	if full.Findings == nil {
		full.Findings = findings.For(spec.Policy)
	}
	return &Search{spec: spec, options: full, method: method, source: source, setup: setup}, o.check()
}

// batch is the number of schedules that a worker claims at once. The worker runs all of them, so
// that no seed is left out.
const batch = 16

// claim returns the seeds of the next schedules to run: from the first one to before the last one.
func (s *Search) claim(ctx context.Context) (from, to uint64, ok bool) {
	if ctx.Err() != nil || !s.ends.IsZero() && time.Now().After(s.ends) {
		return 0, 0, false
	}
	o := s.options
	from = o.First + (s.claimed.Add(1)-1)*batch
	to = from + batch
	if o.Seeds > 0 {
		to = min(to, o.First+o.Seeds)
	}
	return from, to, from < to
}

// Run runs the schedules, judges them by every invariant, and shrinks one violation of each
// signature. It ends with ctx, after the number of schedules, after the time, or after a hundred
// panics in each worker.
func (s *Search) Run(ctx context.Context) *reports.Campaign {
	s.began = time.Now()
	if s.options.For > 0 {
		s.ends = s.began.Add(s.options.For)
	}
	for len(s.workers) < s.options.Workers && ctx.Err() == nil { // each takes some time
		s.workers = append(s.workers, newWorker(s))
	}
	s.inParallel(func(i int) {
		if i < len(s.workers) {
			s.workers[i].run(ctx)
		}
	}, s.progress)
	c := s.campaign(time.Since(s.began))
	s.shrinkAll(ctx, c)
	c.Conclude()
	return c
}

// campaign makes the document from the workers' results.
func (s *Search) campaign(elapsed time.Duration) *reports.Campaign {
	o, n := s.options, s.total()
	c := &reports.Campaign{
		TypeMeta: reports.OfKind(reports.CampaignKind), SkewproofVersion: o.Version, Spec: reports.SearchSpec(s.spec),
		Method: s.method, Scope: s.scope,
		FirstSeed: o.First, Wanted: o.Seeds, Strict: o.Strict,
		Parts: []reports.Part{{
			Schedules: n.schedules, ElapsedSeconds: float64(elapsed.Milliseconds()) / 1000, Workers: o.Workers, Machine: o.Machine,
		}},
		Complete: o.Seeds > 0 && n.schedules == o.Seeds || o.Seeds == 0 && elapsed >= o.For,
	}
	n.Fill(c)
	return c
}
