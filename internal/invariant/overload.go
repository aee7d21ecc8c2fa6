package invariant

import (
	"slices"
	"sort"

	"github.com/skewproof/skewproof/internal/history"
)

// indexOverload finds the times in which the machine was overloaded. In such a time, all ready
// servers (two or more) had slow probes, or one server had a slow probe and its threads got no CPU
// for half of that time. Wrong answers in such a time may come from the overload alone. The same is
// true for the time in which servers then recover (Bounds.Convergence).
//
// One slow server alone is no overload, since its slowness may be its own defect. If a server
// itself overloads the machine, the run becomes inconclusive, which does not count as a pass. Loops
// and crashes still count.
func (f *Facts) indexOverload(h *history.History) {
	slow := map[string][]window{}
	var starved []window
	var times []history.Time
	for _, p := range h.SlowProbes {
		w := window{p.Start, p.End}
		if s := f.byName[p.Server]; s != nil && w.from < w.to {
			if span, whole := s.line.during(w); whole && span.phase == phaseReady {
				slow[p.Server] = append(slow[p.Server], w)
				times = append(times, w.from, w.to)
				if p.Queued >= (w.to-w.from)/2 {
					starved = append(starved, w)
				}
			}
		}
	}
	if len(slow) == 0 {
		return
	}
	for _, l := range f.lifecycle { // the set of ready servers changes at these times
		times = append(times, l.At)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	for i := 1; i < len(times); i++ {
		w := window{times[i-1], times[i]}
		if !contained(starved, w) && !f.allSlow(slow, w) {
			continue
		}
		f.overload += w.to - w.from
		affected := window{w.from, later(w.to, f.bounds.Convergence)}
		if n := len(f.overloads); n > 0 && affected.from <= f.overloads[n-1].to {
			f.overloads[n-1].to = affected.to
		} else {
			f.overloads = append(f.overloads, affected)
		}
	}
}

// allSlow reports whether every ready server had a slow probe over all of w. No probe begins or
// ends in w, and no state changes in w.
func (f *Facts) allSlow(slow map[string][]window, w window) bool {
	ready := 0
	for _, s := range f.servers {
		if s.line.at(w.from).phase != phaseReady {
			continue
		}
		if !contained(slow[s.name], w) {
			return false
		}
		ready++
	}
	return ready >= 2
}

// contained reports whether one of the windows covers all of w.
func contained(windows []window, w window) bool {
	return slices.ContainsFunc(windows, func(o window) bool { return o.from <= w.from && w.to <= o.to })
}

// overloadedAt reports whether the machine was overloaded at this time or shortly before.
func (f *Facts) overloadedAt(at history.Time) bool {
	next := sort.Search(len(f.overloads), func(i int) bool { return f.overloads[i].from > at })
	return next > 0 && at < f.overloads[next-1].to
}
