package engine

import (
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// processFaults are the kills and pauses under way. Their evidence is the requests to the server that were under way meanwhile: a pause that nobody noticed
// proves nothing. Those end when it is over, or later, so that they are counted at the end of the run.
type processFaults struct{ on []history.Fault }

func (e *executor) beginProcessFault(server string, kind scenario.Action) {
	e.faults++
	e.on = append(e.on, history.Fault{
		ID: e.faults, Kind: string(kind), Server: server, Detail: string(kind) + " " + server, Start: e.recorder.Now(),
	})
}

func (e *executor) endProcessFault(server string, kind scenario.Action) {
	var still []history.Fault
	for _, f := range e.on {
		if f.Server == server && f.Kind == string(kind) {
			e.finish(f)
		} else {
			still = append(still, f)
		}
	}
	e.on = still
}

func (e *executor) endAllProcessFaults() {
	for _, f := range e.on {
		e.finish(f)
	}
	e.on = nil
}

func (e *executor) finish(f history.Fault) {
	f.End = e.recorder.Now()
	e.healed = append(e.healed, f)
}

// requests counts those that a fault may have met, when the run is over.
func requests(f history.Fault, recorder *history.Recorder, hops []history.Hop) int {
	if f.Server != "" {
		return recorder.UnderWay(f.Server, f.Start, f.End)
	}
	return requestsThrough(f, hops)
}

// requestsThrough counts the requests that went over the link of a fault while it was on: those a server passed on to the other, or those
// that clients made, as the servers' own logs tell. What the fault kept out is counted as connections instead.
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
