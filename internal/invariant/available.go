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
	Sentence: "No request fails (5xx, broken connection, no answer) on a ready apiserver while that apiserver " +
		"or one that it can reach is able to serve it.",
	Source:   "beyond KEP-4020, whose SLO allows 1 % of proxied requests to fail, at any time (ProxiedSucceed)",
	judge:    judgeAvailable,
	pressure: []pressure{skewed},
}

func judgeAvailable(f *Facts) *tally {
	t := f.timely()
	tolerated, proxied, proxiedFailed := 0, 0, 0
	for _, o := range f.observations {
		r, cause := f.ruleAvailable(o)
		if r == rulingTolerated {
			tolerated++
		}
		if o.skewed() && !o.leftLocal() && (r == rulingRight || r == rulingWrong) {
			proxied++
			if r == rulingWrong {
				proxiedFailed++
			}
		}
		if t.rule(r) {
			class, why := circumstance(f.candidates(o, o.situation), o.op.Server)
			t.violation(signature{o.op.Server, class, cause + " " + why}, o.op.End, o.resource.String(), func() Evidence {
				return f.show(o, o.situation, answer(o.op))
			})
		}
	}
	if proxied > 0 {
		t.fact("proxied operations that failed", fmt.Sprintf("%d of %d (%.2f %%)", proxiedFailed, proxied, 100*float64(proxiedFailed)/float64(proxied)))
	}
	t.fact("tolerated while knowledge spread", tolerated)
	return t
}

// relays are subresources whose answers come from somewhere else, such as a kubelet or a pod: their 5xx say nothing of
// apiservers.
var relays = map[string]bool{"proxy": true, "exec": true, "attach": true, "portforward": true, "log": true}

// ruleAvailable rules on one operation, and says what is wrong with it.
func (f *Facts) ruleAvailable(o *observation) (ruling, string) {
	if o.resource == nil || !o.ready || o.op.Failure == history.FailureCanceled || relays[o.op.Subresource] {
		return rulingNone, ""
	}
	able, informed := f.able(o)
	switch {
	case !able && (o.local == claimUnknown || len(o.unsure) > 0):
		return rulingUnknown, ""
	case !able || !f.undisturbed(client, o.op.Server, o.window):
		return rulingNone, ""
	}
	// A server that has lost etcd can serve nothing, nor find the address of a peer.
	if r, _ := f.reach(o.op.Server, etcd, o.window); r != reachOpen {
		return rulingNone, ""
	}
	final := begun(o.op) && o.op.Failure != history.FailureNone || writes(o.op) && passedOn(o.op, f.hops[o.op.ID])
	if final && o.local != claimYes && f.hindered(o) {
		return rulingNone, "" // it broke off when nothing could be repeated any more: an answer had begun, or a write may have been carried out
	}
	failed, known := failure(o.op)
	switch {
	case f.ownWord(o):
		return rulingNone, ""
	case !known:
		return rulingUnknown, ""
	case failed == "" && !informed:
		return rulingEarly, ""
	case failed == "":
		return rulingRight, ""
	case !informed:
		return rulingTolerated, ""
	default:
		return rulingWrong, failed
	}
}

// able reports whether somebody could have served the operation all the time it lasted, and whether the asked server has
// had the time (Staleness) to know. Of itself it knows at once.
func (f *Facts) able(o *observation) (able, informed bool) {
	if o.local == claimYes {
		return true, true
	}
	if o.local != claimNo {
		return false, false
	}
	for _, p := range o.capable {
		there, _ := f.reach(o.op.Server, p.server.name, o.window)
		store, _ := f.reach(p.server.name, etcd, o.window)
		if there != reachOpen || store != reachOpen {
			continue
		}
		able = true
		heard := f.heard(o, p.server.name, max(p.since, o.readySince))
		informed = informed || f.inTouch(o, p.server) && o.op.Start >= later(heard, f.bounds.Staleness)
	}
	return able, informed
}

// ownWord reports whether an apiserver has answered 500 for what it serves itself, without any peer, by its own account: that is how it answers, right
// or wrong, and no other could have been asked. Up to 1.30 it is how a component status that does not exist is told.
func (f *Facts) ownWord(o *observation) bool {
	if o.local != claimYes || o.op.Status != http.StatusInternalServerError || f.byID[o.op.ID] != o {
		return false
	}
	hops := f.hops[o.op.ID]
	return !passedOn(o.op, hops) && slices.ContainsFunc(hops, func(h history.Hop) bool {
		return h.Server == o.op.Server && h.Status == http.StatusInternalServerError
	})
}

// begun reports whether the client has had the beginning of an answer that is no failure in itself.
func begun(op *history.Operation) bool {
	return op.Status != 0 && op.Status < http.StatusInternalServerError
}

// inTouch reports whether for Staleness nothing has kept the asked server from another, nor that one from saying through etcd that it lives.
func (f *Facts) inTouch(o *observation, with *server) bool {
	w := window{later(o.op.Start, -f.bounds.Staleness), o.op.End}
	for _, way := range []link{{o.op.Server, with.name}, {with.name, etcd}} {
		if r, _ := f.reach(way.from, way.to, w); r != reachOpen {
			return false
		}
	}
	return true
}

// hindered reports whether something was done to a peer that may have been answering, or to the way to it: one that serves the resource,
// or may have until it was killed. Where the servers' accounts tell who was asked, no other counts.
func (f *Facts) hindered(o *observation) bool {
	peers := slices.Clone(o.unsure)
	for _, p := range o.capable {
		peers = append(peers, p.server)
	}
	var hops []history.Hop
	if f.byID[o.op.ID] == o {
		hops = f.hops[o.op.ID]
	}
	told := passedOn(o.op, hops)
	return slices.ContainsFunc(peers, func(s *server) bool {
		r, _ := f.reach(o.op.Server, s.name, o.window)
		return r != reachOpen && (!told || slices.ContainsFunc(hops, func(h history.Hop) bool { return h.Server == s.name }))
	})
}

// failure says how the operation failed, or nothing. It is not known of one that failed for a reason not recorded. An
// established watch may end in any way: it cannot be moved to another server.
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
