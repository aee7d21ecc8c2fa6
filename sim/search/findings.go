package search

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// shrinkAll looks for the smallest schedule of every finding, several at once. When ctx is done, those that are left stay as they are.
func (s *search) shrinkAll(ctx context.Context, c *Campaign) {
	if len(c.Findings) == 0 {
		return
	}
	var next, shrunk atomic.Int64
	s.atOnce(func(int) {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(c.Findings) {
				return
			}
			s.shrinkOne(ctx, &c.Findings[i])
			shrunk.Add(1)
		}
	}, func() Progress { return Progress{Shrunk: int(shrunk.Load()), ToShrink: len(c.Findings)} })
	c.name()
}

// name gives the repro files their names.
func (c *Campaign) name() {
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

// shrinkOne makes the repro of one finding. A panic leaves it without.
func (s *search) shrinkOne(ctx context.Context, f *Finding) {
	defer func() { _ = recover() }() // its seed says enough
	runs := s.options.ShrinkRuns
	if ctx.Err() != nil || runs < 0 {
		ctx, runs = context.WithoutCancel(ctx), 0
	}
	c, on, err := s.recorded(f.Seed)
	if err != nil {
		return
	}
	repro, err := Shrink(ctx, s.spec, *c, on, f.Signature, runs)
	if err != nil {
		return
	}
	repro.Seed, repro.Commit = f.Seed, s.options.Version
	f.tell(repro)
	f.Shrunk = runs > 0 && ctx.Err() == nil
}

// tell takes what is told of the finding from its repro.
func (f *Finding) tell(r *Repro) {
	f.Repro, f.Sentence = r, r.Sentence
	f.Story, f.Disturbances = story(&r.Case)
}

// recorded is the case of a seed with the choices that its run made.
func (s *search) recorded(seed uint64) (*sim.Case, [tape.Streams][]uint32, error) {
	c, t := s.source().Case(seed)
	t.Record(true)
	probe := sim.New(s.setup)
	defer probe.Close()
	_, err := probe.Run(c, t, sim.Options{Run: s.spec.history(seed)})
	return c, t.Recorded(), err
}
