package invariant

import (
	"cmp"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// disturbance is a time in which the run changed or harmed the cluster.
type disturbance struct {
	window
	what string
}

// quietWindow is a time in which nothing changed, all servers were ready, and everyone has had the time (Staleness) to
// learn of everyone else.
type quietWindow struct {
	window
	truth truth
}

// truth is what all servers that were up served by themselves, over some window.
type truth struct {
	known     bool
	documents []*document // one per server, by server name
	// sum is equal for two truths in which the same documents were served by the same number of servers, whichever those
	// were: a merged document that is deterministic depends on nothing else. Empty when not known.
	sum string
}

func (f *Facts) indexDisturbances() {
	add := func(from, to history.Time, what string) {
		f.disturbances = append(f.disturbances, disturbance{window{from, to}, what})
	}
	for _, s := range f.steps {
		if s.Disturbs {
			add(s.Start, s.End, s.Sentence)
		}
	}
	for _, fault := range f.faultList {
		add(fault.Start, fault.End, "fault "+fault.Kind)
	}
	for _, left := range f.regained {
		add(left.Start, left.End, left.From+" regains etcd")
	}
	for _, l := range f.lifecycle {
		add(l.At, l.At, l.Server+" "+string(l.State))
	}
	for _, s := range f.servers {
		for i := 1; i < len(s.served); i++ {
			before, after := s.served[i-1], s.served[i]
			if after.changing() {
				add(after.from, after.to, s.name+" serves other resources")
			}
			if before.doc != nil && after.doc != nil && before.doc != after.doc && before.incarnation == after.incarnation {
				add(after.from, after.from, s.name+" serves other resources")
			}
		}
	}
	slices.SortStableFunc(f.disturbances, func(a, b disturbance) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.what, b.what))
	})
	last := beginning
	for _, d := range f.disturbances {
		f.addQuiet(last, d.from)
		last = max(last, d.to)
	}
	f.addQuiet(last, forever)
}

func (f *Facts) addQuiet(last, next history.Time) {
	w := window{last, next}
	if last != beginning {
		w.from = later(last, f.bounds.Staleness)
	}
	if w.from >= w.to {
		return
	}
	ready := 0
	for _, s := range f.servers {
		switch span := s.line.at(w.from); {
		case span.phase == phaseReady:
			ready++
		case span.phase == phaseDown && (span.left == "" || span.left == history.StateStopped):
			// Not yet started, or gone in good order: nobody should miss it. A killed one may come back.
		default:
			return
		}
	}
	if ready == 0 {
		return
	}
	f.quiet = append(f.quiet, &quietWindow{window: w, truth: f.truth(w)})
}

// quietAt returns the quiet window that all of w lies in, or nil.
func (f *Facts) quietAt(w window) *quietWindow {
	i, found := slices.BinarySearchFunc(f.quiet, w.from, func(q *quietWindow, t history.Time) int { return cmp.Compare(q.from, t) })
	if !found {
		i--
	}
	if i < 0 || !f.quiet[i].holds(w) {
		return nil
	}
	return f.quiet[i]
}

// truth collects what every server that was up over w served over w. It is not known when some server's document is not,
// or changed, or a server came or went, or was killed and may come back.
func (f *Facts) truth(w window) truth {
	if w.to == forever {
		w.to = max(w.from, min(f.finish, forever-1))
	} else if w.from < w.to {
		w.to--
	}
	var t truth
	for _, s := range f.servers {
		i := s.servedIndex(w.from)
		piece := s.served[i]
		same := true
		for _, next := range s.served[i:] {
			if next.overlaps(w) && (next.doc != piece.doc || next.phase != piece.phase) {
				same = false
			}
		}
		switch {
		case !same:
			return truth{}
		case piece.phase == phaseDown && (piece.left == history.StateKilled || piece.left == history.StateCrashed):
			return truth{}
		case piece.phase == phaseDown:
		case piece.doc == nil || !piece.up:
			return truth{}
		default:
			t.documents = append(t.documents, piece.doc)
		}
	}
	hashes := make([]string, 0, len(t.documents))
	for _, d := range t.documents {
		hashes = append(hashes, d.Hash)
	}
	slices.Sort(hashes)
	t.known, t.sum = len(hashes) > 0, strings.Join(hashes, " ")
	return t
}

// lastDisturbance is the end of the last disturbance that some operation can have felt.
func (f *Facts) lastDisturbance() history.Time {
	last := history.Time(0)
	for _, d := range f.disturbances {
		// Servers are stopped when a run is over: that disturbs nobody.
		if d.from <= f.traffic {
			last = max(last, min(d.to, max(d.from, f.finish))) // one that was still on when the run ended ended with it
		}
	}
	return last
}
