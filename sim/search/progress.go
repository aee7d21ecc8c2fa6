package search

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Progress is how far a search is.
type Progress struct {
	Schedules uint64        // that were run
	Wanted    uint64        // that are to be run; 0 if it goes by time
	Elapsed   time.Duration // since it began
	Traces    uint64        // different ones, about
	States    int           // of the interesting ones that were reached
	OfStates  int           // that are possible
	Core      int           // signatures of violations of core invariants
	Extended  int           // and of extended ones
	// Shrunk of ToShrink findings have been shrunk. While ToShrink is not 0, the other fields are.
	Shrunk, ToShrink int
}

// String is a line for people.
func (p Progress) String() string {
	if p.ToShrink > 0 {
		return fmt.Sprintf("looking for the smallest schedules: %d of %d", p.Shrunk, p.ToShrink)
	}
	count := strconv.FormatUint(p.Schedules, 10)
	if p.Wanted > 0 {
		count += " of " + strconv.FormatUint(p.Wanted, 10)
	}
	return fmt.Sprintf("%s schedules, %.0f/s, %d distinct traces, %d of %d states, violations of %d kinds (and %d beyond the KEP)",
		count, float64(p.Schedules)/max(p.Elapsed.Seconds(), 0.001), p.Traces, p.States, p.OfStates, p.Core, p.Extended)
}

func (s *Search) progress() Progress {
	n := s.total()
	p := Progress{Schedules: n.schedules, Elapsed: time.Since(s.began), Traces: min(n.traces.Count(), n.schedules)}
	if s.options.Seeds > 0 {
		p.Wanted = s.share()
	}
	for _, r := range n.reached {
		if r.Schedules > 0 {
			p.States++
		}
		if r.Impossible == "" {
			p.OfStates++
		}
	}
	for signature := range n.found {
		if signature.Grade == invariant.GradeCore {
			p.Core++
		} else {
			p.Extended++
		}
	}
	return p
}

// inParallel calls do in as many goroutines as there are workers, and reports the progress once a second and at the end.
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
