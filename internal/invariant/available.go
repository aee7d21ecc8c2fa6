package invariant

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var available = Invariant{
	Name:    "Available",
	Grade:   GradeExtended,
	Outside: true,
	Sentence: "No request fails (5xx, broken connection, no answer in time) at a ready apiserver while this apiserver, or another one " +
		"that it can reach, can serve the request. An apiserver does not refuse a read that it has answered for the same user before.",
	Source:   "beyond KEP-4020, whose SLO allows 1 % of proxied requests to fail, at any time (ProxiedSucceed)",
	judge:    judgeAvailable,
	answers:  failedOrServed,
	pressure: []pressure{skewed},
}

func judgeAvailable(f *Facts) *tally {
	t := newTimedTally(f)
	proxied, failed := 0, 0
	reads := f.ownReads()
	for _, o := range f.observations {
		r, cause := f.ruleAvailable(o)
		wrong := ""
		if r != rulingOut && f.refusesOwn(o, reads) {
			r, cause, wrong = rulingWrong, fmt.Sprintf("%d", o.op.Status), "refused what it had answered"
		} else if r == rulingRight && f.slow(o) {
			r, cause, wrong = rulingWrong, "answered too late", "answered too late"
		}
		if o.skewed() && !o.localDocument() && (r == rulingRight || r == rulingWrong) {
			proxied++
			if r == rulingWrong {
				failed++
			}
		}
		if t.rule(o, r) {
			t.violate(o, *o.situation, wrong, cause+" "+f.reachability(o, *o.situation), answer(o.op))
		}
	}
	if proxied > 0 {
		t.fact("proxied operations that failed", ratio(failed, proxied))
	}
	t.factTolerated()
	return t
}

// slow reports whether an answer took longer than even an answer about a lost peer may take,
// although no fault was in the way to any server that serves it.
func (f *Facts) slow(o *observation) bool {
	return o.op.End-o.op.Start > f.bounds.Unavailable && o.op.Verb != "watch" && !o.op.AsksForUpgrade() &&
		(o.local == claimYes || !f.peerImpaired(o))
}

// failedOrServed reports whether an answer is a failure or shows that a server served the request.
func failedOrServed(op *history.Operation) bool {
	return op.Status < http.StatusBadRequest || op.Status >= http.StatusInternalServerError
}

func ratio(some, all int) string {
	if all == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d (%.2f %%)", some, all, 100*float64(some)/float64(all))
}

// relays are subresources whose responses come from elsewhere, such as a kubelet or a pod. A 5xx of
// such a subresource says nothing about apiservers.
var relays = map[string]bool{"proxy": true, "exec": true, "attach": true, "portforward": true, "log": true}

// ruleAvailable rules on one operation and says how it failed.
func (f *Facts) ruleAvailable(o *observation) (ruling, string) {
	if o.resource == nil || !o.ready || o.op.Failure == history.FailureCanceled || relays[o.op.Subresource] {
		return rulingNone, ""
	}
	able, informed := f.able(o)
	switch {
	case !able && (o.local == claimUnknown || len(o.unsure) > 0):
		return rulingUnknown, ""
	case !able:
		return rulingNone, ""
	case f.ofNamesake(o):
		return rulingUnknown, ""
	case !f.undisturbed(client, o.op.Server, o.window) || !f.hasEtcd(o, o.window):
		return rulingOut, ""
	case o.local != claimYes && f.sentOnce(o):
		return rulingNone, ""
	case ownError(o):
		return rulingNone, ""
	}
	failed, known := failure(o.op)
	switch {
	case !known:
		return rulingUnknown, ""
	case failed == "" && !informed:
		return rulingEarly, ""
	case failed == "":
		return rulingRight, ""
	case !informed:
		return rulingTolerated, ""
	case len(f.run.Unnamed) > 0 && o.local != claimYes:
		return rulingUnknown, "" // a server that the run did not ask may serve it too, and may have failed
	default:
		return rulingWrong, failed
	}
}

// able reports whether some server was able to serve the operation all the time. informed reports
// whether the asked server has had enough time (Staleness) to know that. If the asked server itself
// served the resource until somebody deleted it, it needs this time to learn that another server
// has a resource of that name built in.
func (f *Facts) able(o *observation) (able, informed bool) {
	if o.local == claimYes {
		return true, true
	}
	if o.local != claimNo {
		return false, false
	}
	ceased, own := f.ceasedAt(o)
	for _, p := range o.capable {
		there, _ := f.reach(o.op.Server, p.server.name, o.window)
		store, _ := f.reach(p.server.name, etcd, o.window)
		if there != reachOpen || store != reachOpen {
			continue
		}
		able = true
		heard := f.couldHear(o, p.server.name, max(p.since, o.readySince))
		if own {
			heard = max(heard, ceased)
		}
		informed = informed || f.inTouch(o, p.server) && o.op.Start >= later(heard, f.bounds.Staleness)
	}
	return able, informed
}

// sentOnce reports whether a fault may have made the operation fail, and the asked server could not
// try another server afterwards.
func (f *Facts) sentOnce(o *observation) bool {
	return unrepeatable(o) && f.peerImpaired(o) || f.lost(o)
}

// unrepeatable reports whether the asked server could not try another server after a failure,
// because the client already had the beginning of a response, or because a peer may have carried
// out a write.
func unrepeatable(o *observation) bool {
	begun := o.op.Status != 0 && o.op.Status < http.StatusInternalServerError
	return begun && o.op.Failure != history.FailureNone || writes(o.op) && o.forwarded()
}

// ownError reports whether the asked server answered 500 for a resource that it serves itself. The
// server's own record must say so, and no peer must be involved. No proxy could do better. Versions
// up to v1.30 answer 500 for a component status that does not exist.
func ownError(o *observation) bool {
	return o.local == claimYes && o.op.Status == http.StatusInternalServerError && !o.forwarded() &&
		slices.ContainsFunc(o.hops, func(h history.Hop) bool {
			return h.Server == o.op.Server && h.Status == http.StatusInternalServerError
		})
}

// peerImpaired reports whether a fault affected a peer that may have handled the operation, or the
// link to it. If hops show which peers handled the operation, only those peers count.
func (f *Facts) peerImpaired(o *observation) bool {
	told := o.forwarded()
	impaired := func(s *server) bool {
		r, _ := f.reach(o.op.Server, s.name, o.window)
		return r != reachOpen && (!told || slices.ContainsFunc(o.hops, func(h history.Hop) bool { return h.Server == s.name }))
	}
	return slices.ContainsFunc(o.unsure, impaired) || slices.ContainsFunc(o.capable, func(p peer) bool { return impaired(p.server) })
}

// lost reports whether the operation is a failed write that no peer recorded, but that may have
// been on its way to a peer when their connection broke or became silent. The asked server cannot
// know whether the peer has carried it out. It does know that if the peer refused every connection.
func (f *Facts) lost(o *observation) bool {
	failed := o.op.Status >= http.StatusInternalServerError || o.op.Failure != history.FailureNone
	if !failed || !writes(o.op) || o.forwarded() {
		return false
	}
	perhapsSent := func(s *server) bool {
		r, _ := f.reach(o.op.Server, s.name, o.window)
		return r != reachOpen && !f.refuses(o.op.Server, s.name, o.window)
	}
	return slices.ContainsFunc(o.unsure, perhapsSent) || slices.ContainsFunc(o.capable, func(p peer) bool { return perhapsSent(p.server) })
}

// failure says how the operation failed, or returns "". known is false if the reason was not
// recorded. An established watch may end in any way, because it cannot be moved to another server.
func failure(op *history.Operation) (how string, known bool) {
	switch {
	case op.Status >= http.StatusInternalServerError:
		return fmt.Sprintf("%d", op.Status), true
	case op.Failure == history.FailureNone:
		return "", op.Status != 0
	case op.Status != 0 && op.Verb == "watch":
		return "", true
	}
	switch op.Failure {
	case history.FailureRefused:
		return "connection refused", true
	case history.FailureReset:
		return "connection broken", true
	case history.FailureTLS:
		return "TLS handshake failed", true
	case history.FailureTimeout:
		return "no answer in time", true
	default:
		return "", false
	}
}
