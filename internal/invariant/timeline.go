package invariant

import (
	"cmp"
	"math"
	"sort"

	"github.com/skewproof/skewproof/internal/history"
)

// window is a time between from (included) and to (excluded). The window of an operation includes
// to.
type window struct{ from, to history.Time }

const (
	beginning = history.Time(math.MinInt64)
	forever   = history.Forever
)

// holds reports whether w contains all of o, including o.to.
func (w window) holds(o window) bool { return w.from <= o.from && o.to < w.to }

// overlaps reports whether w contains any of o, including o.to.
func (w window) overlaps(o window) bool { return w.from <= o.to && o.from < w.to }

// widen moves both ends outwards.
func (w window) widen(by history.Time) window { return window{later(w.from, -by), later(w.to, by)} }

// later adds without overflow, because a saved history may contain any time.
func later(t, by history.Time) history.Time {
	switch sum := t + by; {
	case by > 0 && sum < t:
		return forever
	case by < 0 && sum > t:
		return beginning
	default:
		return sum
	}
}

// phase says what a server's process was doing.
type phase uint8

const (
	phaseUnknown phase = iota // the history does not say
	phaseDown
	phaseStarting
	phaseReady
	phasePaused
	phaseStopping
)

func (p phase) String() string {
	return [...]string{"in an unknown state", "down", "starting", "ready", "paused", "stopping"}[p]
}

// span is a time in which one server's process was in one phase.
type span struct {
	window
	phase phase
	// up is true from ready until the process is made to end, or until it was last seen to serve
	// after it had been asked to end. A paused process is still up: it has its leases, and the
	// resources that it serves exist. So KEP-4020 demands 503 and not 404.
	up          bool
	incarnation int
	version     string
	emulates    string        // the emulated minor version; empty if there is none
	left        history.State // in phaseDown, how the process ended; empty before the first start
}

// answers reports whether the server answered: it was ready, or it was stopping and served on.
func (s span) answers() bool { return s.up && s.phase != phasePaused }

// drains reports whether the server served on after it had been asked to stop.
func (s span) drains() bool { return s.up && s.phase == phaseStopping }

// timeline is the spans of one server, without gaps from beginning to forever.
type timeline []span

// newTimeline takes the records of one server, in time order. The phase is unknown if the server
// has no records. It is also unknown before the first record, unless that record is a start.
func newTimeline(records []history.Lifecycle) timeline {
	current := span{window: window{beginning, forever}, phase: phaseUnknown}
	if len(records) > 0 && records[0].State == history.StateStarting {
		current.phase = phaseDown
	}
	var line timeline
	var interrupted span // the span that the present pause interrupts
	var lastLeft history.State
	var ready bool // the present incarnation was
	for _, r := range records {
		// The run may notice the end of an incarnation after it started the next one.
		if r.Incarnation < current.incarnation {
			continue
		}
		next := span{window: window{r.At, forever}, incarnation: r.Incarnation, version: cmp.Or(r.Version, current.version), emulates: r.Emulates}
		switch r.State {
		case history.StateStarting:
			next.phase, ready = phaseStarting, false
		case history.StateReady:
			next.phase, next.up, ready = phaseReady, true, true
		case history.StateStopping:
			next.phase = phaseStopping
		case history.StateDrained:
			if current.phase != phaseStopping || current.incarnation != r.Incarnation || !ready {
				continue
			}
			current.up, next.phase, next.emulates = true, phaseStopping, current.emulates
		case history.StateStopped, history.StateKilled, history.StateCrashed:
			next.phase, next.left = phaseDown, r.State
			// A process that ends before it was ready, such as one that refuses its configuration,
			// does not remove the leases of a process that was killed before.
			if lost := lastLeft == history.StateKilled || lastLeft == history.StateCrashed; lost && !ready && r.State == history.StateStopped {
				next.left = lastLeft
			}
			lastLeft = next.left
		case history.StatePaused:
			if current.phase == phaseDown || current.phase == phasePaused {
				continue
			}
			interrupted = current
			next.phase, next.up = phasePaused, current.up
		case history.StateResumed:
			if current.phase != phasePaused {
				continue
			}
			next.phase, next.up = interrupted.phase, interrupted.up
		default:
			next.phase = phaseUnknown
		}
		if current.to = r.At; current.from < current.to {
			line = append(line, current)
		}
		current = next
	}
	return append(line, current)
}

// during returns the span at the beginning of w, and whether it lasted for all of w.
func (l timeline) during(w window) (span, bool) {
	s := l.at(w.from)
	return s, s.holds(w)
}

// at returns the span that contains t.
func (l timeline) at(t history.Time) span {
	next := sort.Search(len(l), func(i int) bool { return l[i].from > t })
	return l[max(next-1, 0)]
}

// lifecycleOrder sorts records by time. Records of one time have the order in which a process can
// go through the states.
func lifecycleOrder(a, b history.Lifecycle) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Incarnation, b.Incarnation),
		cmp.Compare(stateRank[a.State], stateRank[b.State]), cmp.Compare(a.State, b.State),
		cmp.Compare(a.Version, b.Version), cmp.Compare(a.Detail, b.Detail))
}

var stateRank = map[history.State]int{
	history.StateStarting: 1, history.StateReady: 2, history.StatePaused: 3, history.StateResumed: 4,
	history.StateStopping: 5, history.StateDrained: 6, history.StateStopped: 7, history.StateKilled: 7, history.StateCrashed: 7,
}
