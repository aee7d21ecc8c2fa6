package search

import (
	"context"
	"fmt"
	"sync"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// checkEvery is of how many schedules one is run twice, and one that needs no judging is judged. It is a prime, because the seeds of a shard are
// as far from each other as there are shards: so every shard has its part, and all together have what one search would have.
const checkEvery = 101

// sampled reports whether the schedule of a seed is one of those.
func (s *search) sampled(seed uint64) bool { return (seed-s.options.First)%checkEvery == 0 }

// worker runs schedules, one after the other.
type worker struct {
	search *search
	source source
	sim    *sim.Simulator
	spare  *sim.Simulator // for running a schedule again: what one simulator keeps from earlier runs, another has not

	mu    sync.Mutex // of tally, which is looked at while the worker is at work
	tally tally

	panics int
}

// mostPanics is after how many panics a worker ends. Each leaves behind what a run keeps: its coroutines cannot be unwound, because nobody knows
// what state they are in.
const mostPanics = 100

func newWorker(s *search) *worker {
	return &worker{search: s, source: s.source(), sim: sim.New(s.setup), spare: sim.New(s.setup), tally: newTally()}
}

func (w *worker) run(ctx context.Context) {
	defer func() {
		w.sim.Close()
		w.spare.Close()
	}()
	for {
		from, to, ok := w.search.claim(ctx)
		if !ok {
			return
		}
		for place := from; place < to; place++ {
			if w.panics == mostPanics {
				return
			}
			w.one(w.search.seed(place))
		}
	}
}

// one runs the schedule of a seed and looks what came of it. A panic is a trouble of that schedule.
func (w *worker) one(seed uint64) {
	defer func() {
		if r := recover(); r != nil {
			w.panics++
			w.sim, w.spare = sim.New(w.search.setup), sim.New(w.search.setup) // nobody knows what state they are in
			w.note(func(t *tally) { t.trouble(fmt.Sprintf("panic: %v", r), seed) })
		}
	}()
	c, t := w.source.Case(seed)
	result, err := w.sim.Run(c, t, sim.Options{Run: w.search.spec.history(seed)})
	if err != nil {
		w.note(func(t *tally) { t.trouble(err.Error(), seed) })
		return
	}
	sampled := w.search.sampled(seed)
	differs := sampled && w.again(c, seed) != result.Hash
	judged := result.Suspect || sampled
	var verdicts []invariant.Verdict
	var found []Violation
	if judged {
		verdicts = invariant.Judge(result.History)
		found = violations(result.History, verdicts)
	}
	w.note(func(t *tally) {
		t.count(result)
		if sampled {
			t.checks.repeated(seed, differs)
		}
		if judged {
			t.judge(verdicts)
			t.find(seed, found)
		}
		if judged && !result.Suspect {
			t.checks.doubted(seed, len(found) > 0)
		}
	})
	if !judged {
		w.sim.Recycle(result)
	}
}

// again runs a schedule once more and returns the hash of its trace.
func (w *worker) again(c *sim.Case, seed uint64) uint64 {
	result, err := w.spare.Run(c, tapeOf(w.search.method, seed), sim.Options{Run: w.search.spec.history(seed)})
	if err != nil {
		return 0
	}
	return result.Hash
}

// tapeOf is the tape that a schedule is run on: drawn from its seed, or, where every schedule is run, of zeros.
func tapeOf(method Method, seed uint64) *tape.Tape {
	if method == MethodAll {
		return &tape.Tape{}
	}
	return tape.Seeded(seed)
}

func (w *worker) note(do func(t *tally)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(&w.tally)
}
