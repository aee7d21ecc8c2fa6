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
	Sentence: "A resource that no apiserver serves is answered 404; 503 is right only while it is not yet " +
		"known what some live apiserver serves, or for a request that a peer has passed on or says to have.",
	Source: "KEP-4020, Design Details, Aggregation Layer: without an eligible peer the next handler answers, 404 if the resource does not exist in the cluster; " +
		"503 while peers are not known yet, and for a rerouted request whose resource is not found",
	judge:    judgeTrueNotFound,
	pressure: []pressure{unserved},
}

func judgeTrueNotFound(f *Facts) *tally {
	t := f.timely()
	tolerated := 0
	for _, o := range f.observations {
		r, cause := f.ruleUnserved(o)
		if r == rulingTolerated {
			tolerated++
		}
		if t.rule(r) {
			t.violation(signature{o.op.Server, "", cause}, o.op.End, o.resource.String(), func() Evidence {
				return f.show(o, o.situation, answer(o.op)+", though no apiserver serves that")
			})
		}
	}
	t.fact("503 tolerated while a live apiserver's resources were not known", tolerated)
	return t
}

// ruleUnserved rules on one operation, and says what is wrong with it.
func (f *Facts) ruleUnserved(o *observation) (ruling, string) {
	switch {
	case o.resource == nil || o.leftLocal() || !o.ready || !routed(o.op) || o.local == claimYes || len(o.capable) > 0:
		return rulingNone, ""
	case !o.unserved():
		return rulingUnknown, ""
	case o.op.Status == http.StatusNotFound:
		return rulingRight, ""
	case o.op.Status == http.StatusServiceUnavailable && f.rerouted(o):
		return rulingRight, ""
	case o.op.Status == http.StatusServiceUnavailable && (len(o.lost) > 0 || f.missing(o)):
		return rulingNone, "" // one that left without a word, and may have served it, may come back: nobody can say which is right
	case o.op.Status == http.StatusServiceUnavailable:
		if f.unsettled(o) {
			return rulingTolerated, ""
		}
		return rulingWrong, "503 rather than 404"
	case o.op.Status >= 500:
		return rulingWrong, fmt.Sprintf("%d rather than 404", o.op.Status)
	}
	// Somebody answered as though the resource were served. Ground truth is sampled, so one who is about to serve it, or
	// has just ceased to, may have.
	margin := window{later(o.op.Start, -f.bounds.Staleness), later(o.op.End, f.bounds.Staleness)}
	for _, s := range f.servers {
		for _, c := range o.resource.coverage[s.index] {
			if (c.claim == claimYes || c.claim == claimUnknown) && c.overlaps(margin) {
				return rulingUnknown, ""
			}
		}
	}
	return rulingWrong, fmt.Sprintf("%d rather than 404", o.op.Status)
}

// rerouted reports whether the request was passed on, by the servers' own accounts, or bore the header that says so: where it comes to, what is not found
// is to be answered 503. Whether a header that a client has forged counts is another matter, and 503 the more cautious answer.
func (f *Facts) rerouted(o *observation) bool {
	return o.op.Rerouted || f.byID[o.op.ID] == o && passedOn(o.op, f.hops[o.op.ID])
}

// missing reports whether some server was killed, or crashed, and has not come back.
func (f *Facts) missing(o *observation) bool {
	return slices.ContainsFunc(f.servers, func(s *server) bool {
		left := s.line.at(o.op.Start).left
		return s != o.asked && (left == history.StateKilled || left == history.StateCrashed)
	})
}

// unsettled reports whether the asked server may not yet know what a live peer serves: some server came, went or changed
// within Staleness, or one that is up was out of reach within Staleness (and may have come to serve anything).
func (f *Facts) unsettled(o *observation) bool {
	w := window{later(o.op.Start, -f.bounds.Staleness), o.op.End}
	if r, _ := f.reach(o.op.Server, etcd, w); r != reachOpen {
		return true // it cannot know who has come
	}
	for _, s := range f.servers {
		for _, piece := range s.served {
			if w.from <= piece.from && piece.from <= w.to || piece.changing() && piece.overlaps(w) {
				return true
			}
		}
		if s == o.asked {
			continue
		}
		span := s.line.at(o.op.Start)
		if !span.up && span.phase != phaseUnknown {
			continue
		}
		if r, _ := f.reach(o.op.Server, s.name, w); r != reachOpen {
			return true
		}
		if r, _ := f.reach(s.name, etcd, w); r != reachOpen {
			return true // it cannot say that it lives
		}
	}
	return false
}
