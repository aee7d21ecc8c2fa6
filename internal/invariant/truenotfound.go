package invariant

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var trueNotFound = Invariant{
	Name:    "TrueNotFound",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "A request for a resource that no apiserver serves is answered 404. 503 is right in two cases only. Either the asked " +
		"apiserver may not know yet what some live apiserver serves. Or a peer passed the request on, really or according to a header.",
	Source: "KEP-4020, Design Details, Aggregation Layer: without an eligible peer the next handler answers, 404 if the resource does not " +
		"exist in the cluster; 503 while peers are not known yet, and for a rerouted request whose resource is not found",
	judge: func(f *Facts) *tally {
		t := newTimedTally(f)
		for _, o := range f.observations {
			r, cause := f.ruleUnserved(o)
			if t.rule(o, r) {
				t.violate(o, *o.situation, "", cause, answer(o.op)+", though no apiserver serves that")
			}
		}
		t.fact("503 tolerated while a live apiserver's resources were not known", t.tolerated)
		return t
	},
	pressure: []pressure{unserved},
}

// ruleUnserved rules on one operation and says what is wrong with it.
func (f *Facts) ruleUnserved(o *observation) (ruling, string) {
	switch {
	case o.resource == nil || o.localDocument() || !o.ready || !routed(o.op) || o.local == claimYes || len(o.capable) > 0:
		return rulingNone, ""
	case !o.unserved():
		return rulingUnknown, ""
	case o.op.Status == http.StatusNotFound:
		return rulingRight, ""
	case o.op.Status == http.StatusServiceUnavailable && f.rerouted(o):
		return rulingRight, ""
	case o.op.Status == http.StatusServiceUnavailable && (len(o.lost) > 0 || f.serverLost(o)):
		return rulingNone, "" // the lost server may serve the resource and may come back: 404 and 503 are both right
	case o.op.Status == http.StatusServiceUnavailable && f.unsettled(o):
		return rulingTolerated, ""
	case o.op.Status < http.StatusInternalServerError && f.nearlyServed(o):
		return rulingUnknown, ""
	default:
		return rulingWrong, fmt.Sprintf("%d rather than 404", o.op.Status)
	}
}

// nearlyServed reports whether some server may have served the resource within Staleness of the
// operation. Ground truth is sampled, so the server may also have served the resource during the
// operation.
func (f *Facts) nearlyServed(o *observation) bool {
	margin := o.window.widen(f.bounds.Staleness)
	for _, line := range o.resource.coverage {
		for _, c := range line {
			if (c.claim == claimYes || c.claim == claimUnknown) && c.overlaps(margin) {
				return true
			}
		}
	}
	return false
}

// rerouted reports whether a peer has forwarded the request, or the client has set the header that
// marks a forwarded request. A server that gets such a request answers 503 if it does not serve the
// resource. 503 is also the more cautious answer to a forged header.
func (f *Facts) rerouted(o *observation) bool {
	return o.op.Rerouted || o.forwarded()
}

// serverLost reports whether some other server was killed or crashed and has not come back.
func (f *Facts) serverLost(o *observation) bool {
	return slices.ContainsFunc(f.servers, func(s *server) bool {
		left := s.line.at(o.op.Start).left
		return s != o.asked && (left == history.StateKilled || left == history.StateCrashed)
	})
}

// unsettled reports whether the asked server may not know yet what a live peer serves. Within
// Staleness, some server started, stopped or changed, or a peer was out of reach. Such a peer is
// up, so it may have begun to serve anything.
func (f *Facts) unsettled(o *observation) bool {
	w := window{later(o.op.Start, -f.bounds.Staleness), o.op.End}
	if !f.hasEtcd(o, w) {
		return true // the asked server cannot know which servers exist
	}
	for _, s := range f.servers {
		lately := w
		if f.slowed(o.op.Server, s.name, w) {
			lately.from = later(lately.from, -f.bounds.Staleness) // a new connection takes several round trips
		}
		for _, piece := range s.served {
			if lately.from <= piece.from && piece.from <= w.to || piece.changing() && piece.overlaps(lately) {
				return true
			}
		}
		span := s.line.at(o.op.Start)
		if s != o.asked && (span.up || span.phase == phaseUnknown) && !f.inTouch(o, s) {
			return true
		}
	}
	return false
}

// inTouch reports whether, for Staleness, the asked server could reach another server, and that
// server could renew its leases in etcd.
func (f *Facts) inTouch(o *observation, with *server) bool {
	w := window{later(o.op.Start, -f.bounds.Staleness), o.op.End}
	for _, l := range []link{{o.op.Server, with.name}, {with.name, etcd}} {
		if r, _ := f.reach(l.from, l.to, w); r != reachOpen {
			return false
		}
	}
	return true
}
