package reports

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

const (
	// aroundWindow is how long before and after a violation requests are shown.
	aroundWindow = 2 * time.Second
	// mostAround is how many of them are shown.
	mostAround = 24
)

// Nearby is a request that was under way within two seconds of a violation.
type Nearby struct {
	// Request has no sender and no text of the answer.
	Request
	// Handled are the servers that have recorded the request, in the order in which they got it.
	Handled []string `json:"handled,omitempty"`
	// Wrong is true if an invariant that counts judged the answer wrong.
	Wrong bool `json:"wrong,omitempty"`
}

// surroundings collects the requests around one violation.
type surroundings struct {
	evidence *Evidence
	at       history.Time // when the shown request was sent
	until    history.Time // when it was answered
	like     *history.Operation
	found    []nearby
}

// nearby is a request with its distance from the violation: first whether it is of the same kind.
type nearby struct {
	Nearby
	kind     int
	distance history.Time
}

// surround adds to every kind of violation that a page shows in full the requests around it.
func (r *RunReport) surround(h *history.History, facts *invariant.Facts, wrong map[*history.Operation]bool) {
	var windows []*surroundings
	byID := map[string]*history.Operation{}
	for _, e := range r.shown() {
		if len(e.Requests) > 0 {
			windows = append(windows, &surroundings{evidence: e})
			byID[e.Requests[0].ID] = nil
		}
	}
	if len(windows) == 0 {
		return
	}
	for n := range h.Operations {
		if _, ok := byID[h.Operations[n].ID]; ok {
			byID[h.Operations[n].ID] = &h.Operations[n]
		}
	}
	for _, w := range windows {
		q := w.evidence.Requests[0]
		w.at, w.like = time.Duration(float64(q.StartSeconds)*1e9), byID[q.ID]
		w.until = w.at + time.Duration(float64(q.DurationSeconds)*1e9)
	}
	for o, handled := range facts.Handled() {
		for _, w := range windows {
			if o.Start <= w.until+aroundWindow && o.End >= w.at-aroundWindow {
				w.see(o, handled.Hops, wrong[o])
			}
		}
	}
	for _, w := range windows {
		w.evidence.AroundTotal = len(w.found)
		w.evidence.Around = w.nearest()
	}
}

// see adds a request of the window.
func (w *surroundings) see(o *history.Operation, hops []history.Hop, wrong bool) {
	n := nearby{kind: w.kindOf(o), distance: max(o.Start-w.at, w.at-o.Start)}
	n.Wrong, n.Request = wrong, Request{
		ID: o.ID, Server: o.Server, Verb: o.Verb, Path: o.Path, StartSeconds: seconds(o.Start), DurationSeconds: seconds(o.End - o.Start),
		Status: o.Status, Failure: o.Failure,
	}
	for _, h := range hops {
		n.Handled = append(n.Handled, h.Server)
	}
	w.found = append(w.found, n)
}

// kindOf is 0 for the shown request, 1 for one to the same server about the same resource, 2 for
// another about the same resource, 3 for another to the same server, 4 for the rest.
func (w *surroundings) kindOf(o *history.Operation) int {
	q := w.evidence.Requests[0]
	like := w.like != nil && w.like.GVR == o.GVR && w.like.Subresource == o.Subresource
	switch {
	case slices.ContainsFunc(w.evidence.Requests, func(shown Request) bool { return shown.ID == o.ID }):
		return 0
	case like && o.Server == q.Server:
		return 1
	case like:
		return 2
	case o.Server == q.Server:
		return 3
	default:
		return 4
	}
}

// nearest returns the requests to show, in time order. Requests of the same kind come before
// others.
func (w *surroundings) nearest() []Nearby {
	slices.SortStableFunc(w.found, func(a, b nearby) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.distance, b.distance), cmp.Compare(a.ID, b.ID))
	})
	var out []Nearby
	for _, n := range w.found[:min(len(w.found), mostAround)] {
		out = append(out, n.Nearby)
	}
	slices.SortStableFunc(out, func(a, b Nearby) int { return cmp.Compare(a.StartSeconds, b.StartSeconds) })
	return out
}

// Answer is the status of the answer, or why there was none.
func (n Nearby) Answer() string { return n.shortAnswer(Evidence{}) }

// Way says which servers handled the request: "b", "b → a".
func (n Nearby) Way() string {
	return strings.Join(n.Handled, " → ")
}
