package invariant

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// An account says, for every request that had to cross, whether some invariant ruled on its answer.
// If none did, the account says why. Without the account, a server that answers 401 to all these
// requests would look right, because 401 says nothing about routing.

// TakenOut counts requests of one class that had to cross, or may have had to cross. They are the
// invariant's business, but the invariant did not rule on them.
type TakenOut struct {
	// Class is the kind of request: a mechanism, or "write" or "table" for whole resources.
	Class string `json:"class"`
	// Answer is the status and its subject, as in Signature.Answer.
	Answer string `json:"answer"`
	// Reason says why the invariant did not rule on them.
	Reason string `json:"reason"`
	// Count is the number of these requests. Of is the number of requests of the class that are the
	// invariant's business.
	Count int `json:"count"`
	Of    int `json:"of"`
	// Unruled is how many of Count no invariant ruled on. It is 0 if the reason excuses the missing
	// ruling.
	Unruled int `json:"unruled,omitempty"`
}

const (
	// leastUnruled is the smallest number of unruled requests of one class that counts as
	// systematic.
	leastUnruled = 20
	// mostUnruled is the percentage of the requests of one class that may be unruled.
	mostUnruled = 5
)

// crosses reports whether the asked server had to pass the request on, or may have had to. It is
// true if the server did not certainly serve the resource, and another server did or may have.
func (o *observation) crosses() bool {
	return o.resource != nil && o.op.GVR.Resource != "" && (o.local == claimNo || o.local == claimUnknown) && len(o.capable)+len(o.unsure) > 0
}

// classOf returns the kind of request. The answer does not matter.
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

// reason says why no invariant ruled on a request that had to cross.
type reason struct {
	words string
	// excused is true if no ruling can be demanded: the server was down, the run itself or another
	// fault interfered, or servers were still allowed to lack the knowledge.
	excused bool
	// contradicts is true if the ground truth cannot be right. Then no ruling on the request
	// counts.
	contradicts bool
}

// whyUnruled says why a request that had to cross may have no ruling. It returns unknown if it
// finds no other reason.
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
	case f.cutOff(o, *o.situation, f.untilBound(o)) && routed(o.op) && o.op.Status < http.StatusInternalServerError &&
		o.op.Status != http.StatusNotFound:
		return reason{words: "the ground truth contradicts itself: answered, though every capable server was out of reach", contradicts: true}
	case !f.undisturbed(client, o.op.Server, o.window):
		return excuse("a fault on the link of the client")
	case !f.hasEtcd(o, o.window):
		return excuse("the asked server was cut off from etcd")
	case o.skewed() && f.knowsDeletion(o, *o.situation):
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

// impaired says which fault of the run may have made the request fail. If the fault lasts only part
// of the time or affects only some connections, 503 is as right as an answer.
func (f *Facts) impaired(o *observation) (why reason, ok bool) {
	if o.op.Status != 0 && o.op.Status < http.StatusInternalServerError && o.op.Failure == history.FailureNone {
		return reason{}, false
	}
	if able, _ := f.able(o); !able {
		return reason{words: "a fault of the run was in the way to every server that serves it", excused: true}, true
	}
	if f.sentOnce(o) {
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

// anyAnswer is for invariants whose ruling covers the whole answer, whatever the answer is.
func anyAnswer(*history.Operation) bool { return true }

// ruledOn returns the requests that had to cross and whose answers some invariant ruled on.
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

// crossing is one invariant's ruling on a request that had to cross.
type crossing struct {
	*observation
	ruling ruling
}

func (c crossing) ruled() bool { return c.ruling != rulingUnknown && c.ruling != rulingOut }

// settle adds to the verdict the requests that the invariant took out, and the doubts that follow.
// ruled holds the requests on which some invariant ruled.
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

// doubtUnruled adds a doubt for each class with a systematic share of unruled requests. The doubt
// names the most frequent kind of them.
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

// Taken returns the number of requests that had to be passed on and that the invariant took out.
func (v Verdict) Taken() int {
	n := 0
	for _, one := range v.TakenOut {
		n += one.Count
	}
	return n
}
