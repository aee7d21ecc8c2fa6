package invariant

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var writesOnce = Invariant{
	Name:     "WritesOnce",
	Grade:    GradeCore,
	Sentence: "A write that a client sent once is carried out at most once.",
	Source: "RFC 9110, 9.2.2: a proxy must not automatically retry requests that are not idempotent; " +
		"of this API that is every write (client-go, rest/request.go)",
	judge:    judgeWritesOnce,
	pressure: []pressure{skewed},
}

func judgeWritesOnce(f *Facts) *tally {
	t := newTally()
	passed, again, done := 0, 0, 0
	for o, hops := range f.accounted() {
		if !changes(o.op) {
			continue
		}
		if !passedOn(o.op, hops) {
			if len(hops) == 0 && routed(o.op) {
				t.rule(rulingUnknown)
			}
			continue
		}
		passed++
		paths, retries := chains(o.op.Server, hops)
		again += retries
		r, by := ruleWritesOnce(o.op, hops, paths, 1+retries)
		if len(by) > 0 {
			done++
		}
		if t.rule(r) {
			cause := "it was carried out by " + strings.Join(by, " and by ")
			if retries > 0 {
				cause += fmt.Sprintf(", though its client sent it %d times", 1+retries)
			}
			f.violateOnTheWay(t, o, func() string { return routeAnswered(hops) }, cause, cause)
		}
	}
	if passed == 0 {
		t.doubt("no write was handled by a second server, so none could be carried out twice")
	}
	t.fact("writes passed on", passed)
	t.fact("writes passed on and carried out", done)
	t.fact("writes sent again by the client", again)
	return t
}

// changes reports whether the operation is a write, and not a rehearsal of one.
func changes(op *history.Operation) bool {
	_, query, _ := strings.Cut(op.Path, "?")
	return writes(op) && !strings.Contains(query, "dryRun=")
}

// writes reports whether the operation is a write, or the rehearsal of one: to a proxy, which goes by the method, both are the same.
func writes(op *history.Operation) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, op.Verb)
}

// ruleWritesOnce rules on one write that was passed on, and says who carried it out. A server carried it out if it answered with
// success, and not with the answer of another one. One whose answer is not known may have, so that another success may be one too
// many. A client (net/http's Transport) may send a request again under the same ID: every sending may be carried out.
func ruleWritesOnce(op *history.Operation, hops []history.Hop, paths [][]string, sent int) (r ruling, by []string) {
	silent := 0
	for i, h := range hops {
		switch {
		case relayed(i, hops, paths):
		case succeeded(h.Status):
			by = append(by, h.Server)
		case h.Status == 0:
			silent++
		}
	}
	// Without the asked server's account nobody knows how often it was sent.
	lost := !slices.ContainsFunc(hops, func(h history.Hop) bool { return !elsewhere(op, h) })
	switch {
	case lost && len(by) > 1, len(by) <= sent && len(by)+silent > sent, len(by) == 0 && succeeded(op.Status):
		return rulingUnknown, by
	case len(by) <= sent:
		return rulingRight, by
	default:
		return rulingWrong, by
	}
}

func succeeded(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices
}

// relayed reports whether the server of hop i passed the operation on and had the answer that it gave from another one: whether some
// hop that is one step further along its way (see chains) lasted no longer than it. When one without a status ended is not known.
func relayed(i int, hops []history.Hop, paths [][]string) bool {
	for j := i + 1; j < len(hops); j++ {
		further := len(paths[j]) == len(paths[i])+1 && slices.Equal(paths[j][:len(paths[i])], paths[i])
		if further && (hops[j].End <= hops[i].End || hops[i].Status == 0) {
			return true
		}
	}
	return false
}

// routeAnswered is the route of an operation with the answer that each server gave.
func routeAnswered(hops []history.Hop) string {
	parts := make([]string, 0, len(hops))
	for _, h := range hops {
		answered := "without an answer that it tells of"
		if h.Status != 0 {
			answered = fmt.Sprintf("with %d", h.Status)
		}
		parts = append(parts, fmt.Sprintf("%s from %s to %s %s", h.Server, clock(h.Start), clock(h.End), answered))
	}
	return strings.Join(parts, ", ")
}
