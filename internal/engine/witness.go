package engine

import (
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// witness holds the records of faults back until the run is over. Part of their evidence are the requests that they met, and
// those end later than the fault, or are told by audit logs that are read at the end: a pause that nobody noticed proves nothing.
type witness struct {
	*history.Recorder
	faults []history.Fault
}

// Fault implements [step.Recorder].
func (w *witness) Fault(f history.Fault) { w.faults = append(w.faults, f) }

// tell writes down the servers' own accounts of requests, and the faults with the requests that they met.
func (w *witness) tell(hops []history.Hop) {
	for _, h := range hops {
		w.Hop(h)
	}
	for _, f := range w.faults {
		if f.Server != "" {
			f.Evidence.Requests = w.UnderWay(f.Server, f.Start, f.End)
		} else {
			f.Evidence.Requests = requestsThrough(f, hops)
		}
		w.Recorder.Fault(f)
	}
}

// requestsThrough counts the requests that went over the link of a fault while the fault was on: those that a server passed on to
// the other, or those that clients made, as the servers' own logs tell. What the fault kept out is counted as connections instead.
func requestsThrough(f history.Fault, hops []history.Hop) int {
	sentBy := map[string]bool{} // operations that From had to pass on
	for _, h := range hops {
		if h.Server == f.From {
			sentBy[h.Operation] = true
		}
	}
	count := 0
	for _, h := range hops {
		if h.Server != f.To || h.Start > f.End || h.End < f.Start {
			continue
		}
		if f.From == fault.Client && !h.Rerouted || h.Rerouted && sentBy[h.Operation] {
			count++
		}
	}
	return count
}
