package invariant

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/skewproof/skewproof/internal/history"
)

// signature is what violations have in common that a reviewer wants to see once.
type signature struct {
	asked string
	class string // which kind of resource: those that the same servers can serve are of one kind
	cause string
}

// tally collects what an invariant observes and makes a Verdict of it.
type tally struct {
	verdict Verdict
	groups  map[signature]*Evidence
	order   []*Evidence
	listed  map[*Evidence]map[string]bool
	doubts  []string

	unended  bool         // the history has no end: see Facts.timely
	unsure   int          // how many violations were not counted for that
	strained []window     // see Facts.timely; empty for an invariant that no strain can break
	strain   history.Time // how long that was
}

func newTally() *tally {
	return &tally{groups: map[signature]*Evidence{}, listed: map[*Evidence]map[string]bool{}}
}

// violation counts one violation. show is asked for the evidence when it is the first of its group; violations must
// come in time order.
func (t *tally) violation(s signature, at history.Time, about string, show func() Evidence) {
	if t.unrecorded() || t.excused(at) {
		return
	}
	t.verdict.Violations++
	group := t.groups[s]
	if group == nil {
		e := show()
		e.Cause, e.Asked, e.First, e.Last = s.cause, s.asked, at, at
		group = &e
		t.groups[s] = group
		t.order = append(t.order, group)
		t.listed[group] = map[string]bool{}
	}
	group.Count++
	group.First, group.Last = min(group.First, at), max(group.Last, at)
	if about != "" {
		t.listed[group][about] = true
	}
}

// rule counts the ruling on one observation and reports whether it was a violation, which the caller then shows.
func (t *tally) rule(r ruling) bool {
	switch r {
	case rulingRight:
		t.verdict.Checked++
	case rulingUnknown:
		t.verdict.Unjudgeable++
	case rulingWrong:
		t.verdict.Checked++
		return true
	case rulingNone, rulingTolerated, rulingEarly:
	}
	return false
}

// fact adds a measured figure.
func (t *tally) fact(name string, value any) {
	t.verdict.Facts = append(t.verdict.Facts, Fact{name, fmt.Sprint(value)})
}

// doubt gives a reason why this cannot be a pass. A violation remains one.
func (t *tally) doubt(format string, args ...any) {
	t.doubts = append(t.doubts, fmt.Sprintf(format, args...))
}

// done returns the verdict but for its outcome, and all doubts. There is a doubt whenever nothing was judged, or less than
// half of what should have been.
func (t *tally) done() (Verdict, []string) {
	t.doubtStrain()
	t.doubtEnd()
	v := t.verdict
	for _, e := range t.order {
		names := make([]string, 0, len(t.listed[e]))
		for name := range t.listed[e] {
			names = append(names, name)
		}
		slices.Sort(names)
		e.ResourcesTotal = len(names)
		e.Resources = names[:min(len(names), MaxListed)]
	}
	v.Kinds = len(t.order)
	for _, e := range t.order[:min(len(t.order), MaxEvidence)] {
		v.Evidence = append(v.Evidence, *e)
	}
	doubts := t.doubts
	switch {
	case v.Checked == 0 && v.Unjudgeable > 0:
		doubts = append(doubts, fmt.Sprintf("what was true is not known for any of the %s in question", counted(v.Unjudgeable, "observation")))
	case v.Checked == 0 && len(doubts) == 0:
		doubts = append(doubts, notExercised)
	case v.Unjudgeable > v.Checked:
		doubts = append(doubts, fmt.Sprintf("what was true is not known for %d of %s: more than half", v.Unjudgeable, counted(v.Unjudgeable+v.Checked, "observation")))
	}
	return v, doubts
}

const notExercised = "not exercised: nothing in this run was its business"

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
