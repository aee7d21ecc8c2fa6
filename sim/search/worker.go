package search

import (
	"context"
	"fmt"
	"sync"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

// checkEvery is in how many schedules one is run twice, and judged whatever it shows. It is a prime, so that every shard has its part of them: the
// seeds of a shard are as far apart as there are shards.
const checkEvery = 101

// sampled reports whether the schedule of a seed is one of them.
func (s *Search) sampled(seed uint64) bool { return (seed-s.options.First)%checkEvery == 0 }

// worker runs schedules, one after the other.
type worker struct {
	search *Search
	source source
	sim    *sim.Simulator
	spare  *sim.Simulator // runs a schedule again: another simulator, which has kept other things from earlier runs

	mu     sync.Mutex // of counts, which are read while the worker runs
	counts *counts

	panics int
}

// mostPanics is after how many panics a worker ends. Each leaves the coroutines of its run behind: they cannot be unwound, since their state is
// unknown.
const mostPanics = 100

func newWorker(s *Search) *worker {
	return &worker{search: s, source: s.source(), sim: sim.New(s.setup), spare: sim.New(s.setup), counts: newCounts(s.spec)}
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

// one runs the schedule of a seed, and judges it if an invariant might object. A panic is a trouble of that schedule.
func (w *worker) one(seed uint64) {
	defer func() {
		if r := recover(); r != nil {
			w.panics++
			w.sim, w.spare = sim.New(w.search.setup), sim.New(w.search.setup) // their state is unknown
			w.note(func(n *counts) { n.trouble(fmt.Sprintf("panic: %v", r), seed) })
		}
	}()
	c, t := w.source.Case(seed)
	result, err := w.sim.Run(c, t, sim.Options{Run: w.search.spec.history(seed)})
	if err != nil {
		w.note(func(n *counts) { n.trouble(err.Error(), seed) })
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
	w.note(func(n *counts) {
		n.run(result)
		if sampled {
			n.repeated(seed, differs)
		}
		if judged {
			n.judge(seed, verdicts, found)
		}
		if judged && !result.Suspect {
			n.doubted(seed, len(found) > 0)
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

// tapeOf is the tape that a schedule is run on: drawn from its seed, or of zeros where every schedule is run.
func tapeOf(method reports.Method, seed uint64) *tape.Tape {
	if method == reports.MethodAll {
		return &tape.Tape{}
	}
	return tape.Seeded(seed)
}

func (w *worker) note(do func(n *counts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(w.counts)
}

// total is what all workers have counted so far.
func (s *Search) total() *counts {
	total := newCounts(s.spec)
	for _, w := range s.workers {
		w.note(total.add)
	}
	return total
}
