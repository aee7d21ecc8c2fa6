package invariant

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/history"
)

// steadyWindow is a time of steady state: nothing changes, all servers are ready, and every server
// has had enough time (Bounds.Staleness) to learn about every other server.
type steadyWindow struct {
	window
	truth truth
}

// truth is what all servers that were up served themselves over some window.
type truth struct {
	known     bool
	documents []*document // one per server, by server name
	// sum is equal for two truths if the same documents were served by the same number of servers,
	// no matter by which. A deterministic merged document depends on nothing else. sum is empty if
	// the truth is unknown.
	sum string
}

// indexDisturbances finds the disturbances and the steady windows between them.
func (f *Facts) indexDisturbances() {
	add := func(from, to history.Time) { f.disturbances = append(f.disturbances, window{from, to}) }
	for _, s := range f.steps {
		if s.Disturbs {
			add(s.Start, s.End)
		}
	}
	for _, u := range f.unleased {
		add(u.from, u.to)
	}
	for _, fault := range slices.Concat(f.faultList, f.reconnects) {
		add(fault.Start, fault.End)
	}
	for _, l := range f.lifecycle {
		add(l.At, l.At)
	}
	for _, s := range f.servers {
		for i := 1; i < len(s.served); i++ {
			before, after := s.served[i-1], s.served[i]
			if after.changing() {
				add(after.from, after.to)
			}
			if before.doc != nil && after.doc != nil && before.doc != after.doc && before.incarnation == after.incarnation {
				add(after.from, after.from)
			}
		}
	}
	slices.SortFunc(f.disturbances, func(a, b window) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	last := beginning
	for _, d := range f.disturbances {
		f.addSteady(last, d.from)
		last = max(last, d.to)
	}
	f.addSteady(last, forever)
}

// addSteady adds the steady window between two disturbances, if there is one.
func (f *Facts) addSteady(last, next history.Time) {
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
			// The server has not started yet, or was stopped. A killed server may come back.
		default:
			return
		}
	}
	if ready > 0 {
		f.steady = append(f.steady, &steadyWindow{window: w, truth: f.truth(w)})
	}
}

// steadyAt returns the steady window that contains all of w, or nil.
func (f *Facts) steadyAt(w window) *steadyWindow {
	next := sort.Search(len(f.steady), func(i int) bool { return f.steady[i].from > w.from })
	if next == 0 || !f.steady[next-1].holds(w) {
		return nil
	}
	return f.steady[next-1]
}

// truth collects what every server that was up over w served over w. It is unknown in two cases:
// the document of some server is unknown or changed, or a server started, stopped, or was killed
// and may come back.
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
		for _, next := range s.served[i:] {
			if next.overlaps(w) && (next.doc != piece.doc || next.phase != piece.phase) {
				return truth{}
			}
		}
		switch {
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

// lastDisturbance is the end of the last disturbance that can have affected an operation, or the
// work of controllers during the steps of the run.
func (f *Facts) lastDisturbance() history.Time {
	last, over := history.Time(0), f.traffic
	for _, s := range f.steps {
		over = max(over, s.End)
	}
	for _, d := range f.disturbances {
		if d.from <= over { // later, servers are stopped because the run has ended
			last = max(last, min(d.to, max(d.from, f.finish))) // a fault that was still active ended with the run
		}
	}
	return last
}

// doubtTruth gives the reasons not to believe the ground truth of the windows that invariants
// relied on. A server that ignores profile=nopeer answers with the merged document. Then the ground
// truth is made from the documents that it should judge, and every merged document looks right. The
// sign of this defect is that two servers of different minor versions have the same nopeer
// document. Patch releases of one minor version may serve the same, and so may a server that
// emulates another minor version (KEP-4330).
func (f *Facts) doubtTruth(relied map[*steadyWindow]bool) []string {
	var out []string
	for _, q := range f.steady {
		if !relied[q] {
			continue
		}
		own := f.ownDocuments(q.from)
		for i, a := range own {
			for _, b := range own[i+1:] {
				if a.minor == b.minor || !a.doc.sameResources(b.doc) {
					continue
				}
				doubt := fmt.Sprintf("%s (%s) and %s (%s) say that they serve exactly the same: their nopeer documents may be merged ones",
					a.server, a.version, b.server, b.version)
				if !slices.Contains(out, doubt) {
					out = append(out, doubt)
				}
			}
		}
	}
	return out
}

// ownDocument is the document in which one server lists what it serves itself.
type ownDocument struct {
	server, version string
	minor           string // the minor version that the server behaves like, "v1.36"
	doc             *document
}

// ownDocuments returns the documents of the servers that are up, by server name. It leaves out
// servers whose version cannot be compared.
func (f *Facts) ownDocuments(at history.Time) []ownDocument {
	var out []ownDocument
	for _, s := range f.servers {
		if piece := s.servedAt(at); piece.up && piece.doc != nil && semver.IsValid(piece.version) {
			minor := semver.MajorMinor(piece.version)
			if piece.emulates != "" {
				minor = "v" + piece.emulates
			}
			out = append(out, ownDocument{s.name, piece.version, minor, piece.doc})
		}
	}
	return out
}

// sameResources compares resources in any order. It ignores verbs and subresources, because a
// merged document has those of the local server.
func (d *document) sameResources(other *document) bool {
	return d == other || maps.Equal(d.resources(), other.resources())
}

func (d *document) resources() map[history.GVR]bool {
	set := make(map[history.GVR]bool, len(d.Resources))
	for _, r := range d.Resources {
		set[r.GVR] = true
	}
	return set
}
