package invariant

import (
	"cmp"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// indexStrain finds the times in which the machine did not keep up: a server let a question wait that was put to it around every link and fault, and
// for half of that time could have run and was not let; or all servers that were ready, two at the least, let questions wait. What they answered for others in that time, and until knowledge and leases can have come right again, may
// be wrong for that reason alone. A server that is slow by itself strains nothing: that may well be its own defect. One that busies the
// machine itself does: then the run is inconclusive, which is not green, and loops and crashes count all the same.
func (f *Facts) indexStrain(h *history.History) {
	late := map[string][]window{}
	var times []history.Time
	var starved []window
	for _, l := range h.Lates {
		w := window{l.Start, l.End}
		if s := f.byName[l.Server]; s != nil && w.from < w.to {
			if span, whole := s.line.during(w); whole && span.phase == phaseReady {
				late[l.Server] = append(late[l.Server], w)
				times = append(times, w.from, w.to)
				if l.Queued >= (w.to-w.from)/2 {
					starved = append(starved, w)
				}
			}
		}
	}
	for _, l := range f.lifecycle { // who is ready is another matter then
		times = append(times, l.At)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	if len(late) == 0 {
		return
	}
	for i := 1; i < len(times); i++ {
		w := window{times[i-1], times[i]}
		if f.allLate(late, w) || slices.ContainsFunc(starved, func(l window) bool { return l.from <= w.from && w.to <= l.to }) {
			f.addStrain(w)
		}
	}
}

// allLate reports whether every server that was ready in a window, in which no question began or ended and nobody's state changed, let one wait.
func (f *Facts) allLate(late map[string][]window, w window) bool {
	waiting := 0
	for _, s := range f.servers {
		if s.line.at(w.from).phase != phaseReady {
			continue
		}
		if !slices.ContainsFunc(late[s.name], func(l window) bool { return l.from <= w.from && w.to <= l.to }) {
			return false
		}
		waiting++
	}
	return waiting >= 2
}

func (f *Facts) addStrain(w window) {
	f.strain += w.to - w.from
	excused := window{w.from, later(w.to, f.bounds.Convergence)}
	if n := len(f.strained); n > 0 && excused.from <= f.strained[n-1].to {
		f.strained[n-1].to = excused.to
		return
	}
	f.strained = append(f.strained, excused)
}

// timely returns the tally of an invariant that a machine which does not keep up can break: it demands something within a time. In a history without
// an end it can show nothing: which links the run itself had cut is recorded at the end of a run.
func (f *Facts) timely() *tally {
	t := newTally()
	t.strained, t.strain, t.unended = f.strained, f.strain, !f.end.Complete
	return t
}

// unrecorded takes what is seen for unjudgeable rather than wrong, if what would excuse it may not have been recorded.
func (t *tally) unrecorded() bool {
	if !t.unended {
		return false
	}
	t.unsure++
	t.verdict.Checked--
	t.verdict.Unjudgeable++
	return true
}

// doubtEnd says what was not counted for want of an end.
func (t *tally) doubtEnd() {
	if t.unsure > 0 {
		t.doubt("%s seen that may come of faults whose record is missing: they are recorded at the end of a run", counted(t.unsure, "wrong answer"))
	}
}

// strains reports whether the machine did not keep up at an instant, or shortly before.
func (t *tally) strains(at history.Time) bool {
	i, found := slices.BinarySearchFunc(t.strained, at, func(w window, at history.Time) int { return cmp.Compare(w.from, at) })
	if !found {
		i--
	}
	return i >= 0 && at < t.strained[i].to
}

// excused takes what is seen at an instant for unjudgeable rather than wrong, if the machine did not keep up.
func (t *tally) excused(at history.Time) bool {
	if !t.strains(at) {
		return false
	}
	t.verdict.Checked--
	t.verdict.Unjudgeable++
	t.verdict.Strained++
	return true
}

// doubtStrain says what was not counted.
func (t *tally) doubtStrain() {
	if n := t.verdict.Strained; n > 0 {
		t.fact("wrong while the machine did not keep up, and not counted", n)
		t.doubt("the machine did not keep up: for %s in total, servers were slow to answer the run's own direct questions, all at once or because no processor was free; %s of that time and soon after may come of it; "+
			"run again with fewer --qps or on a quieter machine", clock(t.strain), counted(n, "wrong answer"))
	}
}
