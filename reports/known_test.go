package reports

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports/findings"
)

// These are the signatures of a violation that finding 2 explains, of one that finding 1 explains,
// and of one that no finding explains.
var (
	everywhere = invariant.Signature{
		Invariant: "X", Mechanism: invariant.MechanismSubresource, Answer: "404 resource",
	}
	rare    = invariant.Signature{Invariant: "X", Mechanism: invariant.MechanismResource, Answer: "404 resource"}
	unknown = invariant.Signature{Invariant: "X", Mechanism: invariant.MechanismResource, Answer: "500"}
)

func catalogueForTests() findings.Catalogue {
	match := func(s invariant.Signature) []findings.Match {
		return []findings.Match{{Invariants: []string{s.Invariant}, Mechanisms: []invariant.Mechanism{s.Mechanism}, Answers: []string{s.Answer}}}
	}
	return findings.Catalogue{
		{Number: 1, Title: "rare", Matches: match(rare), Scenarios: []string{"one"}},
		{Number: 2, Title: "everywhere", Matches: match(everywhere), Scenarios: []string{"one", "two", "three"}},
	}
}

func TestWhatIsNewComesFirst(t *testing.T) {
	group := func(s invariant.Signature, count int) invariant.Evidence {
		return invariant.Evidence{
			Signature: s, Sentence: "it went wrong", Count: count, Asked: "b", Servers: []string{"b", "c"}, First: at(3), Last: at(4),
			Resources:      []string{s.Answer},
			ResourcesTotal: 1, Operations: smallRun().Operations[:1], Candidates: []invariant.Candidate{{Server: "a"}},
		}
	}
	verdict := func(name string, groups ...invariant.Evidence) invariant.Verdict {
		v := invariant.Verdict{Name: name, Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, Evidence: groups, Kinds: len(groups)}
		for _, g := range groups {
			v.Violations += g.Count
		}
		return v
	}
	for _, c := range []struct {
		name      string
		verdicts  []invariant.Verdict
		order     []string // of the first invariant's evidence
		accounted string   // of the first invariant
		headline  []string // parts
		outcome   invariant.Outcome
	}{
		{
			"all three", []invariant.Verdict{verdict("X", group(everywhere, 90), group(rare, 7), group(unknown, 1))},
			[]string{"NEW", "known (finding 1)", "known (finding 2)"}, "98 times: 1 NEW, 7 known (finding 1), 90 known (finding 2)",
			[]string{"to 1 request for 500", "1 violation is NEW; the others are known: findings 1 and 2."}, invariant.OutcomeFail,
		},
		{
			"only known", []invariant.Verdict{verdict("X", group(everywhere, 90), group(rare, 7))},
			[]string{"known (finding 1)", "known (finding 2)"}, "97 times: 7 known (finding 1), 90 known (finding 2)",
			[]string{"b and c answered", "to 7 requests", "(finding 1); other violations: finding 2. Nothing is new."}, invariant.OutcomeKnown,
		},
		{
			"an invariant with something NEW is told before one without",
			[]invariant.Verdict{verdict("X", group(everywhere, 90)), verdict("Y", group(unknown, 2))},
			[]string{"known (finding 2)"}, "90 times: 90 known (finding 2)", []string{"to 2 requests for 500", "2 violations are NEW"}, invariant.OutcomeFail,
		},
		{
			"nothing is known", []invariant.Verdict{verdict("X", group(unknown, 2))}, []string{"NEW"}, "2 times, NEW",
			[]string{"to 2 requests for 500", "No finding explains it"}, invariant.OutcomeFail,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reportOf(smallRun(), c.verdicts, Options{Findings: catalogueForTests()})
			var order []string
			for _, e := range r.Invariants[0].Evidence {
				order = append(order, e.Label())
			}
			if !slices.Equal(order, c.order) {
				t.Errorf("evidence in the order %q, want %q", order, c.order)
			}
			if got := r.Invariants[0].Accounted(); got != c.accounted {
				t.Errorf("accounted as %q, want %q", got, c.accounted)
			}
			for _, part := range c.headline {
				if !strings.Contains(r.Verdict.Sentence, part) {
					t.Errorf("headline %q, want %q in it", r.Verdict.Sentence, part)
				}
			}
			if r.Verdict.Outcome != c.outcome {
				t.Errorf("the run is %s, want %s", r.Verdict.Outcome, c.outcome)
			}
		})
	}
}

// A finding that shows under many circumstances takes one place. NEW violations take one place for
// each circumstance.
func TestAFindingIsToldOnce(t *testing.T) {
	i := Invariant{}
	for n := range 20 {
		e := Evidence{New: n%2 == 0, Count: n}
		if !e.New {
			e.Known = &Known{Finding: 1 + n%4}
		}
		i.Evidence = append(i.Evidence, e)
	}
	told, listed := i.told()
	if len(told) != mostTold || len(told)+len(listed) != 20 || told[0].Count != 0 || told[1].Count != 1 || told[3].Count != 3 || told[4].Count != 4 || told[5].Count != 6 {
		t.Errorf("told in full %+v, listed %+v", told, listed)
	}
}

// Violations beyond the groups that a verdict shows count as NEW, because no finding was compared
// with them.
func TestWhatIsNotShownIsNew(t *testing.T) {
	v := invariant.Verdict{
		Name: "X", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, Violations: 10, Kinds: 2,
		Evidence: []invariant.Evidence{{Signature: rare, Count: 9}},
	}
	if r := reportOf(smallRun(), []invariant.Verdict{v}, Options{Findings: catalogueForTests()}); r.Verdict.New != 1 || r.Verdict.Outcome != invariant.OutcomeFail {
		t.Errorf("%d NEW, want 1", r.Verdict.New)
	}
}

// Without any proxy nothing is NEW, and an invariant is known only if findings explain all of its
// violations.
func TestWithoutAProxyNothingIsNew(t *testing.T) {
	v := func(all ...invariant.Signature) invariant.Verdict {
		v := invariant.Verdict{Name: "X", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, Violations: len(all), Kinds: len(all)}
		for _, s := range all {
			v.Evidence = append(v.Evidence, invariant.Evidence{Signature: s, Count: 1})
		}
		return v
	}
	for _, c := range []struct {
		verdicts []invariant.Verdict
		want     invariant.Outcome
		findings [][]int
		ending   string // of the headline
	}{
		{[]invariant.Verdict{v(rare)}, invariant.OutcomeKnown, [][]int{{1}}, "(finding 1). Nothing is new."},
		{[]invariant.Verdict{v(rare, unknown)}, invariant.OutcomeFail, [][]int{nil}, ""},
		{[]invariant.Verdict{v(rare), v(unknown)}, invariant.OutcomeFail, [][]int{{1}, nil}, ""},
	} {
		h := smallRun()
		h.Run.Subject = subjectNone
		r := reportOf(h, c.verdicts, Options{Findings: catalogueForTests()})
		if r.Verdict.New != 0 || r.Verdict.Outcome != c.want || strings.Contains(r.Verdict.Sentence, "Nothing is new") != (c.ending != "") ||
			!strings.HasSuffix(r.Verdict.Sentence, c.ending) {
			t.Errorf("%v: %s, %d NEW: %s", c.findings, r.Verdict.Outcome, r.Verdict.New, r.Verdict.Sentence)
		}
		for n, want := range c.findings {
			if i := r.Invariants[n]; !slices.Equal(i.Findings, want) || i.New != 0 {
				t.Errorf("invariant %d of %v: findings %v, %d NEW", n, c.findings, i.Findings, i.New)
			}
		}
	}
}

// A NEW violation fails, whatever is undecided. What is undecided comes before what is known, and
// is told beside it.
func TestWhatIsKnownIsNoVerdictOnWhatIsUndecided(t *testing.T) {
	v := func(s invariant.Signature) invariant.Verdict {
		return invariant.Verdict{Name: "X", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, Violations: 1, Kinds: 1,
			Evidence: []invariant.Evidence{{Signature: s, Count: 1}}}
	}
	undecided := invariant.Verdict{Name: "Y", Grade: invariant.GradeCore, Outcome: invariant.OutcomeInconclusive, About: true, Reason: "too little"}
	for _, c := range []struct {
		why      string
		verdicts []invariant.Verdict
		cut      bool
		want     invariant.Outcome
		sentence string
	}{
		{"known", []invariant.Verdict{v(rare)}, false, invariant.OutcomeKnown, "(finding 1). Nothing is new."},
		{"known, and its own invariant undecided", []invariant.Verdict{v(rare), undecided}, false, invariant.OutcomeInconclusive,
			"proves nothing about Y: too little. Besides, X was violated once, for example:  (finding 1). Nothing is new."},
		{"known, and cut short", []invariant.Verdict{v(rare)}, true, invariant.OutcomeInconclusive, "Besides, X was violated"},
		{"NEW, and its own invariant undecided", []invariant.Verdict{v(unknown), undecided}, false, invariant.OutcomeFail, "it is NEW"},
	} {
		h := smallRun()
		if c.cut {
			h.End.Error = "stopped"
		}
		r := reportOf(h, c.verdicts, Options{Findings: catalogueForTests()})
		if r.Verdict.Outcome != c.want || !strings.Contains(r.Verdict.Sentence, c.sentence) {
			t.Errorf("%s: %s: %s, want %s: …%s", c.why, r.Verdict.Outcome, r.Verdict.Sentence, c.want, c.sentence)
		}
	}
}

func TestTheSentenceOfASuite(t *testing.T) {
	c := ConformanceReport{
		Metadata: ConformanceMetadata{Complete: true},
		Scenarios: []ConformanceScenario{{Name: "one", Core: ProfileResult{Result: ResultKnown, Violated: []string{"X"}, Findings: []int{2}}},
			{Name: "two", Core: ProfileResult{Result: ResultPassed}, Extended: ProfileResult{Result: ResultFailed, New: 1}}},
		Control: ConformanceControl{Runs: []ControlRun{{Scenario: "one", Result: ResultPassed}}},
	}
	c.Conclude()
	const told = "the KEP was violated in 1 of 2 scenarios: finding 2; nothing is new; 1 of 2 scenarios passed core, 1 known"
	if c.Result != ResultKnown || c.Sentence != told {
		t.Errorf("%s: %s", c.Result, c.Sentence)
	}
}

// A finding may be fixed if a scenario always shows it, the run tested for it, and it did not show.
func TestFindingsThatDoNotShow(t *testing.T) {
	known := catalogueForTests()
	known[0].Scenarios, known[1].Scenarios = []string{"peer-partition"}, []string{"peer-partition"}
	run := func(o invariant.Outcome, change func(*history.History), catalogue findings.Catalogue) []Known {
		h := smallRun()
		h.Run.Scenario, h.Run.From, h.Run.To = "peer-partition", older, newer
		if change != nil {
			change(h)
		}
		v := invariant.Verdict{Name: "X", Grade: invariant.GradeCore, Outcome: o, Checked: 1,
			Evidence: []invariant.Evidence{{Signature: everywhere, Count: 1}}}
		return reportOf(h, []invariant.Verdict{v}, Options{Findings: catalogue}).Verdict.Missing
	}
	if got := run(invariant.OutcomeFail, nil, known); len(got) != 1 || got[0].Finding != 1 {
		t.Errorf("missing %+v, want finding 1", got)
	}
	byChance := slices.Clone(known)
	byChance[0].Chance = "it rains"
	for name, got := range map[string][]Known{
		"nothing was tested":     run(invariant.OutcomeInconclusive, nil, known),
		"it shows by chance":     run(invariant.OutcomeFail, nil, byChance),
		"the run was cut short":  run(invariant.OutcomeFail, func(h *history.History) { h.End.Complete = false }, known),
		"another scenario":       run(invariant.OutcomeFail, func(h *history.History) { h.Run.Scenario = "quiet" }, known),
		"servers of one version": run(invariant.OutcomeFail, func(h *history.History) { h.Run.To = h.Run.From }, known),
		"no findings requested":  run(invariant.OutcomeFail, nil, nil),
	} {
		if len(got) > 0 {
			t.Errorf("%s: missing %+v", name, got)
		}
	}
}
