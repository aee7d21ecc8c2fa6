package invariant

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// An account says for every request that had to cross whether some invariant ruled on its answer,
// and why not otherwise. Without it, a server that answers 401 to all of them would look right: 401
// says nothing about routing.

// TakenOut is requests of one class that had to cross, or may have had to, and that an invariant
// did not rule on, although they are its business.
type TakenOut struct {
	// Class is what was asked: a mechanism, or for whole resources "write" or "table".
	Class string `json:"class"`
	// Answer is the status and what it is about, as in Signature.Answer.
	Answer string `json:"answer"`
	// Reason says why the invariant did not rule on them.
	Reason string `json:"reason"`
	// Count is how many there are. Of is how many requests of the class are the invariant's business.
	Count int `json:"count"`
	Of    int `json:"of"`
	// Unruled is how many of Count no invariant ruled on. It is 0 if the reason excuses that.
	Unruled int `json:"unruled,omitempty"`
}

const (
	// leastUnruled is how many requests of one class must be unruled to make a systematic share.
	leastUnruled = 20
	// mostUnruled is how many in a hundred requests of one class may be unruled.
	mostUnruled = 5
)

// crosses reports whether the request had to be passed on, or may have had to: the asked server did
// not serve the resource for certain, and some other server did or may have.
func (o *observation) crosses() bool {
	return o.resource != nil && o.op.GVR.Resource != "" && (o.local == claimNo || o.local == claimUnknown) && len(o.capable)+len(o.unsure) > 0
}

// class is what the request asks for. The answer does not matter.
func (f *Facts) classOf(o *observation) string {
	m := f.requested(o)
	switch {
	case m == MechanismResource && writes(o.op):
		return "write"
	case m == MechanismResource && o.op.Verb == history.VerbTable:
		return "table"
	default:
		return string(m)
	}
}

// reason is why no invariant ruled on a request that had to cross.
type reason struct {
	words string
	// excused is true if a ruling cannot be demanded: the server was not there, the run itself or
	// another fault interfered, or knowledge was still allowed to spread.
	excused bool
	// contradicts is true if the ground truth cannot be right. Then no ruling on it counts.
	contradicts bool
}

// whyUnruled says why a request that had to cross may have no ruling. unknown is the reason if
// nothing else is.
func (f *Facts) whyUnruled(o *observation, unknown string) reason {
	excuse := func(words string) reason { return reason{words: words, excused: true} }
	switch span, whole := o.asked.line.during(o.window); {
	case o.op.Failure == history.FailureCanceled:
		return excuse("canceled by the load")
	case span.phase == phaseUnknown:
		return reason{words: "the state of the asked server is unknown"}
	case !whole || span.phase != phaseReady:
		return excuse("the asked server was not ready")
	case f.proxyOff(o.op.Server, o.window):
		return excuse("the proxy of the asked server was switched off")
	}
	if why, ok := f.uncertain(o); ok {
		return why
	}
	switch {
	case f.cutOff(o, o.situation, f.untilBound(o)) && routed(o.op) && o.op.Status < http.StatusInternalServerError && o.op.Status != http.StatusNotFound:
		return reason{words: "the ground truth contradicts itself: answered, though every capable server was out of reach", contradicts: true}
	case !f.undisturbed(client, o.op.Server, o.window):
		return excuse("a fault on the link of the client")
	case !f.hasEtcd(o, o.window):
		return excuse("the asked server was cut off from etcd")
	case o.skewed() && f.knowsDeletion(o, o.situation):
		return excuse("the asked server had served it: it may know of a deletion first")
	case o.op.Status != 0 && !routed(o.op):
		return reason{words: "rejected before routing"}
	case truncated404(o.op):
		return reason{words: "a truncated 404 may deny the resource or an object"}
	}
	if why, ok := f.impaired(o); ok {
		return why
	}
	return reason{words: unknown}
}

// impaired says which fault of the run may be why the request failed. With a fault for a part of
// the time or on some connections, 503 is as right as an answer.
func (f *Facts) impaired(o *observation) (why reason, ok bool) {
	if o.op.Status != 0 && o.op.Status < http.StatusInternalServerError && o.op.Failure == history.FailureNone {
		return reason{}, false
	}
	if able, _ := f.able(o); !able {
		return reason{words: "a fault of the run was in the way to every server that serves it", excused: true}, true
	}
	if unrepeatable(o) && f.peerImpaired(o) {
		return reason{words: "it could be sent only once, and a fault of the run was in the way to a server that serves it", excused: true}, true
	}
	return reason{}, false
}

// uncertain says why it is not certain which servers served the resource.
func (f *Facts) uncertain(o *observation) (why reason, ok bool) {
	if o.skewed() {
		return reason{}, false
	}
	uncertain := o.unsure
	if o.local == claimUnknown {
		uncertain = []*server{o.asked}
	}
	for _, s := range uncertain {
		known := true
		for i := s.servedIndex(o.window.from); i < len(s.served) && s.served[i].overlaps(o.window); i++ {
			piece := s.served[i]
			known = known && (piece.doc != nil || piece.changing() || !piece.up && piece.phase != phaseUnknown)
		}
		if !known {
			return reason{words: "unknown what a server served"}, true
		}
	}
	return reason{words: "a server that may serve it was starting, stopping or changing", excused: true}, true
}

// anyAnswer is for invariants that rule on the whole answer, whatever it is.
func anyAnswer(*history.Operation) bool { return true }

// ruledOn are the requests that had to cross and on whose answers some invariant ruled.
func ruledOn(invariants []Invariant, tallies []*tally) map[*observation]bool {
	ruled := map[*observation]bool{}
	for i, t := range tallies {
		for _, c := range t.crossings {
			if c.ruled() && invariants[i].answers != nil && invariants[i].answers(c.op) {
				ruled[c.observation] = true
			}
		}
	}
	return ruled
}

// crossing is what one invariant said about a request that had to cross.
type crossing struct {
	*observation
	ruling ruling
}

func (c crossing) ruled() bool { return c.ruling != rulingUnknown && c.ruling != rulingOut }

// settle adds to the verdict what the invariant took out, and the doubts that come of it. ruled are
// the requests on which some invariant ruled.
func (t *tally) settle(i Invariant, ruled map[*observation]bool) {
	business := map[string]int{}
	taken := map[TakenOut]TakenOut{}
	for _, c := range t.crossings {
		class := t.facts.classOf(c.observation)
		business[class]++
		if c.ruled() && (!i.everyCrossing || ruled[c.observation]) {
			continue
		}
		unknown := cmp.Or(i.unknown, "no invariant rules on such an answer")
		if ruled[c.observation] {
			unknown = cmp.Or(i.unknown, "another invariant rules on such an answer")
		}
		why := t.facts.whyUnruled(c.observation, unknown)
		kind := TakenOut{Class: class, Answer: answerKind(c.op), Reason: why.words}
		one, ok := taken[kind]
		if !ok {
			one = kind
		}
		one.Count++
		if i.answers != nil && !why.excused && (why.contradicts || !ruled[c.observation]) {
			one.Unruled++
		}
		taken[kind] = one
	}
	for _, one := range taken {
		one.Of = business[one.Class]
		t.verdict.TakenOut = append(t.verdict.TakenOut, one)
	}
	slices.SortFunc(t.verdict.TakenOut, func(a, b TakenOut) int {
		return cmp.Or(-cmp.Compare(a.Unruled, b.Unruled), -cmp.Compare(a.Count, b.Count),
			cmp.Compare(a.Class, b.Class), cmp.Compare(a.Answer, b.Answer), cmp.Compare(a.Reason, b.Reason))
	})
	t.doubtUnruled()
}

// doubtUnruled adds a doubt for each class of which a systematic share is unruled. It names the
// largest kind.
func (t *tally) doubtUnruled() {
	unruled := map[string]int{}
	largest := map[string]TakenOut{}
	for _, one := range t.verdict.TakenOut { // the largest first
		unruled[one.Class] += one.Unruled
		if _, ok := largest[one.Class]; !ok {
			largest[one.Class] = one
		}
	}
	for _, class := range slices.Sorted(maps.Keys(unruled)) {
		n, one := unruled[class], largest[class]
		if n < leastUnruled || 100*n < mostUnruled*one.Of {
			continue
		}
		t.verdict.Unruled += n
		t.doubt("no invariant rules on %s of the requests that had to be passed on (%s); most of them: %d (%s), %s",
			ratio(n, one.Of), class, one.Unruled, one.Answer, one.Reason)
	}
}

// Taken is how many requests that had to be passed on the invariant took out.
func (v Verdict) Taken() int {
	n := 0
	for _, one := range v.TakenOut {
		n += one.Count
	}
	return n
}
