package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var writesOnce = Invariant{
	Name:     "WritesOnce",
	Grade:    GradeCore,
	Sentence: "A write that a client sent once is carried out at most once.",
	Source: "RFC 9110, 9.2.2: a proxy must not automatically retry requests that are not idempotent; " +
		"in this API, every write is such a request (client-go, rest/request.go)",
	judge:    judgeWritesOnce,
	unknown:  "the records of the servers are incomplete",
	pressure: []pressure{skewed, writesDone},
}

func judgeWritesOnce(f *Facts) *tally {
	t := newTally(f)
	passed, again, done := 0, 0, 0
	for o := range f.identified() {
		if !writes(o.op) || dryRun(o.op) {
			continue
		}
		if !o.forwarded() {
			if len(o.hops) == 0 && routed(o.op) {
				t.rule(o, rulingUnknown)
			}
			continue
		}
		passed++
		paths, retries := f.chains(o)
		again += retries
		r, by := ruleWritesOnce(o.op, o.hops, paths, 1+retries)
		if len(by) > 0 {
			done++
		}
		cause := "it was carried out by " + strings.Join(by, " and by ")
		if retries > 0 {
			cause += fmt.Sprintf(", though its client sent it %d times", 1+retries)
		}
		t.ruleHops(r, o, withStatus, "carried out more than once", cause, cause)
	}
	if passed == 0 {
		t.doubt("no write was handled by a second server, so none could be carried out twice")
	}
	t.fact("writes passed on", passed)
	t.fact("writes passed on and carried out", done)
	t.fact("writes sent again by the client", again)
	return t
}

func dryRun(op *history.Operation) bool {
	_, query, _ := strings.Cut(op.Path, "?")
	return strings.Contains(query, "dryRun=")
}

// writes reports whether the operation is a write or a dry run of a write. A proxy looks only at
// the method, so it cannot distinguish the two.
func writes(op *history.Operation) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, op.Verb)
}

// ruleWritesOnce rules on one forwarded write, and returns the servers that carried it out. A
// server carried it out if the server answered with success and did not just relay the answer of a
// peer. If the answer of a server is unknown, that server may have carried it out too. A client
// (net/http's Transport) may send a request again with the same ID. Then servers may carry it out
// as often as it was sent.
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
	// Without an entry of the asked server, it is unknown how often the write was sent.
	lost := !slices.ContainsFunc(hops, func(h history.Hop) bool { return !atPeer(op, h) })
	switch {
	case lost && len(by) > 1, len(by) <= sent && len(by)+silent > sent, len(by) == 0 && succeeded(op.Status):
		return rulingUnknown, by
	case len(by) <= sent:
		return rulingRight, by
	default:
		return rulingWrong, by
	}
}

// relayed reports whether the answer in hop i is that of a peer: some hop that is one step further
// on the same chain ended no later. The end of a hop without a status is unknown.
func relayed(i int, hops []history.Hop, paths [][]string) bool {
	for j := i + 1; j < len(hops); j++ {
		further := len(paths[j]) == len(paths[i])+1 && slices.Equal(paths[j][:len(paths[i])], paths[i])
		if further && (hops[j].End <= hops[i].End || hops[i].Status == 0) {
			return true
		}
	}
	return false
}
