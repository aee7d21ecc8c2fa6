package invariant

import "testing"

// The order of the four words is the same for a run, a suite, a table and a search.
func TestTheWordOfAStanding(t *testing.T) {
	for s, want := range map[Standing]Outcome{
		{}:                                OutcomePass,
		{Undecided: true}:                 OutcomeInconclusive,
		{Violated: true}:                  OutcomeKnown,
		{Violated: true, Undecided: true}: OutcomeInconclusive,
		{Violated: true, New: true}:       OutcomeFail,
		{Violated: true, New: true, Undecided: true}: OutcomeFail,
	} {
		if got := s.Outcome(); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
	}
}

// Overall asks for every verdict that counts whether it is known.
func TestKnownVerdicts(t *testing.T) {
	vs := []Verdict{
		{Grade: GradeCore, Outcome: OutcomeFail}, {Grade: GradeCore, Outcome: OutcomePass, About: true}, {Grade: GradeExtended, Outcome: OutcomeFail},
	}
	known := func(which ...int) func(int) bool {
		return func(n int) bool {
			for _, k := range which {
				if k == n {
					return true
				}
			}
			return false
		}
	}
	for _, c := range []struct {
		why          string
		known        func(int) bool
		want, strict Outcome
	}{
		{"no findings", nil, OutcomeFail, OutcomeFail},
		{"nothing is known", known(), OutcomeFail, OutcomeFail},
		{"the core violation is known", known(0), OutcomeKnown, OutcomeFail},
		{"all are known", known(0, 2), OutcomeKnown, OutcomeKnown},
		{"only what does not count is known", known(2), OutcomeFail, OutcomeFail},
	} {
		if got := Overall(vs, false, c.known).Outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
		if got := Overall(vs, true, c.known).Outcome(); got != c.strict {
			t.Errorf("%s, strict: %s, want %s", c.why, got, c.strict)
		}
	}
	doubted := append([]Verdict{{Grade: GradeCore, Outcome: OutcomeInconclusive, About: true}}, vs...)
	if got := Overall(doubted, false, known(1)).Outcome(); got != OutcomeInconclusive {
		t.Errorf("a known violation, and one of the run's own invariants is undecided: %s, want inconclusive", got)
	}
}
