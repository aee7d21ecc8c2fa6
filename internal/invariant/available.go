package invariant

import (
	"fmt"
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
)

var available = Invariant{
	Name:  "Available",
	Grade: GradeExtended,
	Sentence: "No request fails (5xx, broken connection, no answer) on a ready apiserver while that apiserver " +
		"or one that it can reach is able to serve it.",
	Source:   "beyond KEP-4020, whose SLO allows 1 % of proxied requests to fail",
	judge:    judgeAvailable,
	pressure: []pressure{skewed},
}

func judgeAvailable(f *Facts) *tally {
	t := newTally()
	tolerated, proxied, proxiedFailed := 0, 0, 0
	for _, o := range f.observations {
		r, cause := f.ruleAvailable(o)
		if r == rulingTolerated {
			tolerated++
		}
		if o.skewed() && (r == rulingRight || r == rulingWrong) {
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
	settled := o.op.Start >= later(o.readySince, f.bounds.Staleness)
	for _, p := range o.capable {
		there, _ := f.reach(o.op.Server, p.server.name, o.window)
		store, _ := f.reach(p.server.name, etcd, o.window)
		if there != reachOpen || store != reachOpen {
			continue
		}
		able = true
		informed = informed || settled && o.op.Start >= later(p.since, f.bounds.Staleness)
	}
	return able, informed
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
