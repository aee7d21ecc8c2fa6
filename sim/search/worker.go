package search

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/sim"
)

// checkEvery says that one in so many schedules is run twice.
const checkEvery = 101

// sampled reports whether the schedule of a seed is one of these.
func (s *Search) sampled(seed uint64) bool { return (seed-s.options.First)%checkEvery == 0 }

// worker runs schedules, one after the other.
type worker struct {
	search *Search
	source source
	sim    *sim.Simulator
	spare  *sim.Simulator // runs a schedule again; its memory holds other earlier runs

	mu     sync.Mutex // protects counts, which are read while the worker runs
	counts *Tally

	panics int
}

// mostPanics is the number of panics after which a worker ends, because each panic leaks the
// coroutines of its run.
const mostPanics = 100

func newWorker(s *Search) *worker {
	return &worker{search: s, source: s.source(), sim: sim.New(s.setup), spare: sim.New(s.setup), counts: NewTally(s.spec)}
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
		for seed := from; seed < to; seed++ {
			if w.panics == mostPanics {
				return
			}
			w.one(seed)
		}
	}
}

// one runs and judges the schedule of a seed. A panic counts as a trouble of that schedule.
func (w *worker) one(seed uint64) {
	defer func() {
		if r := recover(); r != nil {
			w.panics++
			w.sim, w.spare = sim.New(w.search.setup), sim.New(w.search.setup) // their state is unknown
			w.note(func(n *Tally) { n.Trouble(fmt.Sprintf("panic: %v", r), seed) })
		}
	}()
	c, t := w.source.Case(seed)
	result, err := w.sim.Run(c, t, sim.Options{Run: w.search.spec.history(seed)})
	if err != nil {
		w.note(func(n *Tally) { n.Trouble(err.Error(), seed) })
		return
	}
	sampled := w.search.sampled(seed)
	differs := sampled && w.again(seed) != result.Hash
	verdicts := invariant.Judge(result.History)
	found := Violations(w.search.options.Findings, verdicts)
	w.note(func(n *Tally) {
		n.run(result)
		if sampled {
			n.repeated(seed, differs)
		}
		n.judge(seed, verdicts, found)
	})
	w.sim.Recycle(result)
}

// again makes the schedule of a seed once more, runs it, and returns the hash of its trace.
func (w *worker) again(seed uint64) uint64 {
	c, t := w.source.Case(seed)
	result, err := w.spare.Run(c, t, sim.Options{Run: w.search.spec.history(seed)})
	if err != nil {
		return 0
	}
	return result.Hash
}

func (w *worker) note(do func(n *Tally)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(w.counts)
}

// total returns the counts of all workers so far.
func (s *Search) total() *Tally {
	total := NewTally(s.spec)
	for _, w := range s.workers {
		w.note(total.add)
	}
	return total
}

// Progress is the progress of a search.
type Progress struct {
	Schedules uint64        // schedules so far
	Wanted    uint64        // all schedules to run; 0 if the search is limited by time
	Elapsed   time.Duration // since the start
	States    int           // interesting states reached so far
	OfStates  int           // interesting states that are possible
	Core      int           // signatures of violations of core invariants
	Extended  int           // and of extended invariants
	// Shrunk of ToShrink findings have been shrunk. The other fields are 0 while ToShrink is above
	// 0.
	Shrunk, ToShrink int
}

// String returns a line of text.
func (p Progress) String() string {
	if p.ToShrink > 0 {
		return fmt.Sprintf("looking for the smallest schedules: %d of %d", p.Shrunk, p.ToShrink)
	}
	count := strconv.FormatUint(p.Schedules, 10)
	if p.Wanted > 0 {
		count += " of " + strconv.FormatUint(p.Wanted, 10)
	}
	return fmt.Sprintf("%s schedules, %.0f/s, %d of %d states, violations of %d kinds (and %d beyond the KEP)",
		count, float64(p.Schedules)/max(p.Elapsed.Seconds(), 0.001), p.States, p.OfStates, p.Core, p.Extended)
}

func (s *Search) progress() Progress {
	n := s.total()
	p := Progress{Schedules: n.schedules, Wanted: s.options.Seeds, Elapsed: time.Since(s.began)}
	for _, r := range n.reached {
		if r.Schedules > 0 {
			p.States++
		}
		if r.Impossible == "" {
			p.OfStates++
		}
	}
	for _, f := range n.found {
		if f.Grade == invariant.GradeCore {
			p.Core++
		} else {
			p.Extended++
		}
	}
	return p
}

// inParallel calls do in as many goroutines as there are workers, and reports the progress once a
// second.
func (s *Search) inParallel(do func(i int), progress func() Progress) {
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
