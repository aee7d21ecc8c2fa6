package reports

import (
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// invariantGroups are the invariants by what a reader has to do about them: read those that failed
// or proved too little, and only count the others.
type invariantGroups struct {
	// Open are the invariants that failed, and those that are inconclusive although the run tests
	// them. Held are those that passed. Idle are those that no request of the run tests.
	Open, Held, Idle []Invariant
}

func newInvariantGroups(r RunReport) invariantGroups {
	var g invariantGroups
	for _, i := range r.Invariants {
		switch {
		case i.Outcome == invariant.OutcomePass:
			g.Held = append(g.Held, i)
		case i.idle():
			g.Idle = append(g.Idle, i)
		default:
			g.Open = append(g.Open, i)
		}
	}
	return g
}

// idle reports whether the run has nothing to do with the invariant: no request tests it, and the
// scenario does not exist for it.
func (i Invariant) idle() bool {
	return i.Outcome == invariant.OutcomeInconclusive && !i.matters() && i.Checked == 0 && i.Unjudgeable == 0 &&
		strings.HasPrefix(i.Reason, "not exercised")
}

// Unproved names the invariants that the run tests and that are inconclusive.
func (g invariantGroups) Unproved() string {
	var out []Invariant
	for _, i := range g.Open {
		if i.Outcome == invariant.OutcomeInconclusive {
			out = append(out, i)
		}
	}
	return names(out)
}

// names joins the names of invariants.
func names(all []Invariant) string {
	var out []string
	for _, i := range all {
		out = append(out, i.Name)
	}
	return strings.Join(out, ", ")
}

// checked is how many answers the invariants judged, all together.
func checked(all []Invariant) int {
	n := 0
	for _, i := range all {
		n += i.Checked
	}
	return n
}
