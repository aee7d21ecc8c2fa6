package invariant

import "slices"

// Standing is what a verdict on several verdicts depends on: those of the invariants of a run, or
// those of the runs of a suite, a table or a search. The zero value is a pass.
type Standing struct {
	// Violated is true if something that counts was violated.
	Violated bool
	// New is true if no finding explains some of that, or if the subject has no findings.
	New bool
	// Undecided is true if nothing could be said about something that the run or suite is about.
	Undecided bool
}

// Outcome is the one rule for the word of a verdict. A NEW violation fails, whatever else is
// undecided. What is undecided comes before what is known, because a run that does not decide what
// it is about must not look finished.
func (s Standing) Outcome() Outcome {
	switch {
	case s.Violated && s.New:
		return OutcomeFail
	case s.Undecided:
		return OutcomeInconclusive
	case s.Violated:
		return OutcomeKnown
	default:
		return OutcomePass
	}
}

// And combines two standings.
func (s Standing) And(other Standing) Standing {
	return Standing{s.Violated || other.Violated, s.New || other.New, s.Undecided || other.Undecided}
}

// Overall combines the verdicts of one run. Core invariants count; if strict is set, extended ones
// count as well. known reports whether findings explain all violations of the n-th verdict; if it
// is nil, they explain none.
//
// A run is undecided if nothing that counts passed or was violated, or if one of these invariants
// is inconclusive: an invariant that the scenario tests, one for which the machine was too slow, or
// one that took out a systematic share of the requests that had to cross. A negative control that
// does not violate what it must is undecided, and whatever else it violates counts for nothing:
// such a run says nothing about its subject.
func Overall(vs []Verdict, strict bool, known func(n int) bool) Standing {
	if slices.ContainsFunc(vs, func(v Verdict) bool { return v.Control && v.Outcome != OutcomeFail }) {
		return Standing{Undecided: true}
	}
	var s Standing
	decided := false
	for n, v := range vs {
		if v.Grade != GradeCore && !strict {
			continue
		}
		switch v.Outcome {
		case OutcomeFail:
			s.Violated, s.New, decided = true, s.New || known == nil || !known(n), true
		case OutcomePass:
			decided = true
		case OutcomeInconclusive:
			s.Undecided = s.Undecided || v.About || v.Overloaded > 0 || v.Unruled > 0
		}
	}
	s.Undecided = s.Undecided || !decided
	return s
}
