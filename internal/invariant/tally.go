package invariant

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/internal/history"
)

// ruling is what an invariant says about one operation.
type ruling uint8

const (
	rulingNone      ruling = iota // the invariant does not apply
	rulingRight                   // as it must be
	rulingWrong                   // a violation
	rulingTolerated               // wrong, but knowledge is still allowed to spread
	rulingEarly                   // right, while knowledge is still allowed to spread
	rulingUnknown                 // not to be judged: the ground truth is missing or contradicts itself
)

// signature is what the violations of one group have in common.
type signature struct {
	asked string
	class string // kind of resource: resources with the same candidates are of one kind
	cause string
}

// group is the violations of one signature, with the names of the resources that they are about.
type group struct {
	Evidence
	about map[string]bool
}

// tally collects the rulings of one invariant and makes a Verdict of them.
type tally struct {
	facts *Facts
	// timed is true if the invariant demands something within a time. An overloaded machine can
	// break such an invariant, and so can a fault that was not recorded because the history has no
	// end.
	timed      bool
	verdict    Verdict
	tolerated  int
	unrecorded int // violations that may come from a fault that was not recorded
	relied     map[*steadyWindow]bool
	groups     map[signature]*group
	order      []*group
	doubts     []string
}

func newTally(f *Facts) *tally {
	return &tally{facts: f, groups: map[signature]*group{}, relied: map[*steadyWindow]bool{}}
}

// newTimedTally returns the tally of an invariant that demands something within a time.
func newTimedTally(f *Facts) *tally {
	t := newTally(f)
	t.timed = true
	return t
}

// rule counts the ruling on one operation. It reports whether that is a violation, which the caller
// then shows.
func (t *tally) rule(r ruling) bool {
	switch r {
	case rulingRight, rulingWrong:
		t.verdict.Checked++
	case rulingUnknown:
		t.verdict.Unjudgeable++
	case rulingTolerated:
		t.tolerated++
	case rulingNone, rulingEarly:
	}
	return r == rulingWrong
}

// violation counts one violation. show makes the evidence for the first of its group. Violations
// must come in time order.
func (t *tally) violation(s signature, at history.Time, about string, show func() Evidence) {
	switch {
	case t.timed && !t.facts.end.Complete:
		t.unrecorded++
		t.unjudge()
		return
	case t.overloaded(at):
		t.verdict.Overloaded++
		t.unjudge()
		return
	}
	t.verdict.Violations++
	g := t.groups[s]
	if g == nil {
		g = &group{show(), map[string]bool{}}
		g.Cause, g.Asked, g.First, g.Last = s.cause, s.asked, at, at
		t.groups[s] = g
		t.order = append(t.order, g)
	}
	g.Count++
	g.First, g.Last = min(g.First, at), max(g.Last, at)
	if about != "" {
		g.about[about] = true
	}
}

// unjudge makes an operation that was counted as checked unjudgeable.
func (t *tally) unjudge() {
	t.verdict.Checked--
	t.verdict.Unjudgeable++
}

// overloaded reports whether a violation at this time may come from an overloaded machine.
func (t *tally) overloaded(at history.Time) bool { return t.timed && t.facts.overloadedAt(at) }

// violate counts a violation in the response to o, which was sent in situation s.
func (t *tally) violate(o *observation, s situation, class, cause, complaint string) {
	t.violation(signature{o.op.Server, class, cause}, o.op.End, o.resource.name(), func() Evidence {
		return t.facts.show(o, s, complaint)
	})
}

// ruleHops counts the ruling on how servers handled o. A violation shows each hop with its detail.
func (t *tally) ruleHops(r ruling, o *observation, detail func(history.Hop) string, cause, what string) {
	if !t.rule(r) {
		return
	}
	t.violation(signature{o.op.Server, "", cause}, o.op.End, o.resource.name(), func() Evidence {
		e := t.facts.show(o, o.situation, answer(o.op))
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

// done returns the verdict without its outcome, and all doubts. There is a doubt if nothing was
// judged, or less than half of what should have been.
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
		names := make([]string, 0, len(g.about))
		for name := range g.about {
			names = append(names, name)
		}
		slices.Sort(names)
		g.ResourcesTotal, g.Resources = len(names), names[:min(len(names), MaxListed)]
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
