package invariant

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/internal/history"
)

// ruling is what an invariant says about one operation.
type ruling uint8

const (
	rulingNone      ruling = iota // the invariant does not apply
	rulingRight                   // the answer is as it must be
	rulingWrong                   // a violation
	rulingTolerated               // wrong, but knowledge is still allowed to spread
	rulingEarly                   // right, although knowledge is still allowed to spread
	rulingUnknown                 // not judged: the ground truth is missing or contradicts itself
	rulingOut                     // not judged for another reason, such as another fault
)

// breach is one violation.
type breach struct {
	Signature
	op    *history.Operation // the wrong operation, or nil
	asked string             // the server that was asked
	at    history.Time
	about string // the resource, if the breach is about one
	cause string // what is wrong, for people
	// size orders the violations of one signature: the smallest is shown.
	size int
	// untimed is true if neither slowness nor a missing record can have caused the breach.
	untimed bool
}

// group holds the violations of one signature, with the names of their resources and of the servers
// that were asked.
type group struct {
	Evidence
	size         int
	about, asked map[string]bool
}

// tally collects the rulings of one invariant and makes a Verdict from them.
type tally struct {
	facts *Facts
	// timed is true if the invariant demands something within a time. An overloaded machine can
	// break such an invariant. So can a fault that was not recorded because the history has no end.
	timed      bool
	verdict    Verdict
	tolerated  int
	unrecorded int // violations that may come from a fault that was not recorded
	relied     map[*steadyWindow]bool
	groups     map[Signature]*group
	order      []*group
	doubts     []string
	crossings  []crossing // rulings on requests that had to cross
	// rulings and breaches are all rulings and violations. They are kept only if facts.deciding.
	rulings  []crossing
	breaches []breach
}

func newTally(f *Facts) *tally {
	return &tally{facts: f, groups: map[Signature]*group{}, relied: map[*steadyWindow]bool{}}
}

// newTimedTally returns the tally of an invariant that demands something within a time.
func newTimedTally(f *Facts) *tally {
	t := newTally(f)
	t.timed = true
	return t
}

// rule counts the ruling on one operation, or on no operation if o is nil. It reports whether the
// ruling is a violation. If so, the caller shows the violation.
func (t *tally) rule(o *observation, r ruling) bool {
	if r != rulingNone && o != nil && o.crosses() {
		t.crossings = append(t.crossings, crossing{o, r})
	}
	if t.facts.deciding && o != nil {
		t.rulings = append(t.rulings, crossing{o, r})
	}
	switch r {
	case rulingRight, rulingWrong:
		t.verdict.Checked++
	case rulingUnknown:
		t.verdict.Unjudgeable++
	case rulingTolerated:
		t.tolerated++
	case rulingNone, rulingEarly, rulingOut:
	}
	return r == rulingWrong
}

// violation counts one violation. show makes the evidence if the violation is the smallest of its
// group so far. Of equally small violations, the first is shown.
func (t *tally) violation(b breach, show func() Evidence) {
	switch {
	case t.timed && !b.untimed && !t.facts.end.Complete:
		t.unrecorded++
		t.unjudge()
		return
	case !b.untimed && t.overloaded(b.at):
		t.verdict.Overloaded++
		t.unjudge()
		return
	}
	t.verdict.Violations++
	if t.facts.deciding {
		t.breaches = append(t.breaches, b)
	}
	if b.op != nil {
		t.verdict.Wrong = append(t.verdict.Wrong, b.op)
	}
	g := t.groups[b.Signature]
	if g == nil {
		g = &group{Evidence: Evidence{First: b.at, Last: b.at}, size: b.size + 1, about: map[string]bool{}, asked: map[string]bool{}}
		t.groups[b.Signature] = g
		t.order = append(t.order, g)
	}
	if b.size < g.size {
		e := show()
		e.Cause, e.Asked, e.Count, e.First, e.Last = b.cause, b.asked, g.Count, g.First, g.Last
		g.Evidence, g.size = e, b.size
	}
	g.Signature = b.Signature
	g.Count++
	g.First, g.Last = min(g.First, b.at), max(g.Last, b.at)
	if b.asked != "" {
		g.asked[b.asked] = true
	}
	if b.about != "" {
		g.about[b.about] = true
	}
}

// unjudge makes an operation that was counted as checked unjudgeable.
func (t *tally) unjudge() {
	t.verdict.Checked--
	t.verdict.Unjudgeable++
}

// overloaded reports whether a violation at this time may come from an overloaded machine.
func (t *tally) overloaded(at history.Time) bool { return t.timed && t.facts.overloadedAt(at) }

// breach is a violation in the response to o, which was sent in situation s. wrong says what is
// wrong, without server names, for the signature. cause says the same for people.
func (t *tally) breach(o *observation, s situation, wrong, cause string) breach {
	return breach{
		Signature: t.facts.signature(o, s, wrong), op: o.op, asked: o.op.Server, at: o.op.End, about: o.resource.name(),
		cause: cause, size: t.facts.size(o),
	}
}

// violate counts a violation in the response to o, which was sent in situation s.
func (t *tally) violate(o *observation, s situation, wrong, cause, complaint string) {
	t.violation(t.breach(o, s, wrong, cause), func() Evidence {
		return t.facts.show(o, s, complaint)
	})
}

// ruleHops counts the ruling on how servers handled o. A violation shows each hop with its detail.
func (t *tally) ruleHops(r ruling, o *observation, detail func(history.Hop) string, wrong, cause, what string) {
	if !t.rule(o, r) {
		return
	}
	t.violation(t.breach(o, *o.situation, wrong, cause), func() Evidence {
		e := t.facts.show(o, *o.situation, answer(o.op))
		user := o.op.User
		if user == "" {
			user = "a client"
		}
		e.Sentence = fmt.Sprintf("%s was asked at %s by %s: %s. The request was handled by %s: %s.",
			o.op.Server, clock(o.op.Start), user, request(o.op), route(o.hops, detail), what)
		return e
	})
}

// fact adds a measured figure.
func (t *tally) fact(name string, value any) {
	t.verdict.Facts = append(t.verdict.Facts, Fact{name, fmt.Sprint(value)})
}

// factTolerated adds how many wrong answers were tolerated.
func (t *tally) factTolerated() { t.fact("tolerated while knowledge spread", t.tolerated) }

// doubt adds a reason why the verdict cannot be a pass. It does not change a fail.
func (t *tally) doubt(format string, args ...any) {
	t.doubts = append(t.doubts, fmt.Sprintf(format, args...))
}

// done returns the verdict without its outcome, and all doubts. It adds a doubt if no operation was
// judged, or less than half of the operations to judge.
func (t *tally) done() (Verdict, []string) {
	t.doubts = append(t.doubts, t.facts.doubtTruth(t.relied)...)
	if n := t.verdict.Overloaded; n > 0 {
		t.fact("wrong while the machine was overloaded, and not counted", n)
		t.doubt("the machine was overloaded: for %s in total, the run's own probes were slow on all servers at once, or on a server that "+
			"got no CPU; %s of that time or shortly after may come from it; run again with fewer --qps or on an idle machine",
			clock(t.facts.overload), counted(n, "wrong answer"))
	}
	if t.unrecorded > 0 {
		t.doubt("%s may come from faults that are not in the history: faults are recorded at the end of a run",
			counted(t.unrecorded, "wrong answer"))
	}
	v := t.verdict
	v.Kinds = len(t.order)
	for _, g := range t.order[:min(len(t.order), MaxEvidence)] {
		names := slices.Sorted(maps.Keys(g.about))
		g.ResourcesTotal, g.Resources = len(names), names[:min(len(names), MaxListed)]
		g.Servers = slices.Sorted(maps.Keys(g.asked))
		v.Evidence = append(v.Evidence, g.Evidence)
	}
	switch {
	case v.Checked == 0 && v.Unjudgeable > 0:
		t.doubt("the ground truth is unknown for all operations in question (%d)", v.Unjudgeable)
	case v.Checked == 0 && len(t.doubts) == 0:
		t.doubt(notExercised)
	case v.Unjudgeable > v.Checked:
		t.doubt("the ground truth is unknown for %d of %s: more than half", v.Unjudgeable, counted(v.Unjudgeable+v.Checked, "operation"))
	}
	return v, t.doubts
}

const notExercised = "not exercised: no request in this run tests it"

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
