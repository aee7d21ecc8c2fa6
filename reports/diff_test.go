package reports

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
)

// judged is a report with violations, by signature.
func judged(scenario string, violations map[invariant.Signature]int, checked ...string) RunReport {
	r := RunReport{TypeMeta: OfKind(Kind),
		Metadata: Metadata{Scenario: scenario, Subject: "builtin", From: "v1.36.3", To: "v1.37.1", Complete: true}}
	verdicts := map[string]invariant.Verdict{}
	for _, name := range checked {
		verdicts[name] = invariant.Verdict{Name: name, Grade: invariant.GradeCore, Outcome: invariant.OutcomePass, Checked: 1}
	}
	for s, n := range violations {
		v := verdicts[s.Invariant]
		v.Name, v.Grade, v.Outcome = s.Invariant, invariant.GradeCore, invariant.OutcomeFail
		v.Violations += n
		v.Evidence = append(v.Evidence, invariant.Evidence{Signature: s, Count: n, Sentence: "it went | wrong"})
		verdicts[s.Invariant] = v
	}
	for _, i := range invariant.All() {
		v, ok := verdicts[i.Name]
		if !ok {
			v = invariant.Verdict{Name: i.Name, Grade: i.Grade, Outcome: invariant.OutcomeInconclusive, Reason: "not exercised"}
		}
		r.Invariants = append(r.Invariants, newInvariants([]invariant.Verdict{v}, catalogueForTests(), "builtin")...)
	}
	r.Verdict.Outcome = invariant.OutcomeFail
	return r
}

func TestCompare(t *testing.T) {
	sig := func(name, answer string) invariant.Signature {
		return invariant.Signature{Invariant: name, Mechanism: invariant.MechanismResource, Answer: answer}
	}
	circumstances := sig("NoFalseNotFound", "404 resource")
	circumstances.Change = invariant.ChangeOther
	a := judged("quiet", map[invariant.Signature]int{sig("NoFalseNotFound", "404 resource"): 5, sig("TrueNotFound", "500"): 2,
		sig("ListsAgree", "200"): 1}, "Converges")
	b := judged("quiet", map[invariant.Signature]int{circumstances: 7, sig("Converges", "404 resource"): 3}, "TrueNotFound")
	d := Compare(a, b)
	want := []KindDiff{
		{State: DiffNew, Signature: sig("Converges", "404 resource"), B: 3},
		{State: DiffStill, Signature: sig("NoFalseNotFound", "404 resource"), A: 5, B: 7},
		{State: DiffFixed, Signature: sig("TrueNotFound", "500"), A: 2},
		{State: DiffUntested, Signature: sig("ListsAgree", "200"), A: 1},
	}
	if len(d.Kinds) != len(want) || !d.Worse() {
		t.Fatalf("%+v", d.Kinds)
	}
	for i, k := range d.Kinds {
		if w := want[i]; k.State != w.State || k.Signature != w.Signature || k.A != w.A || k.B != w.B || k.Label != "NEW" {
			t.Errorf("%+v, want %+v", k, w)
		}
	}
	verdicts := map[string]VerdictDiff{}
	for _, v := range d.Verdicts {
		verdicts[v.Name] = v
	}
	if len(verdicts) != 3 || verdicts["Converges"].A != invariant.OutcomePass || verdicts["TrueNotFound"].B != invariant.OutcomePass {
		t.Errorf("verdicts %+v", d.Verdicts)
	}
	if same := Compare(a, a); same.Worse() || len(same.Verdicts) > 0 {
		t.Errorf("a run differs from itself: %+v", same)
	}
}

func TestRunsOfASuiteAreComparedByScenario(t *testing.T) {
	write := func(dir string, r RunReport) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := WriteAll(dir, r); err != nil {
			t.Fatal(err)
		}
	}
	a, b := t.TempDir(), t.TempDir()
	full := small()
	for i := range full.Invariants {
		for j := range full.Invariants[i].Evidence {
			full.Invariants[i].Evidence[j].Signature = invariant.Signature{Invariant: full.Invariants[i].Name,
				Mechanism: invariant.MechanismResource}
		}
	}
	write(filepath.Join(a, "scenarios", "one"), full)
	write(filepath.Join(b, "scenarios", "one"), full)
	write(filepath.Join(b, "control", "one"), full) // a control run must fail, and is not compared
	other := full
	other.Metadata.Scenario = "two"
	write(filepath.Join(b, "scenarios", "two"), other)
	c := compared(t, a, b)
	if len(c.Runs) != 1 || len(c.Notes) != 1 || c.Notes[0] != "two, "+full.Metadata.Subject+", "+full.Metadata.Backend+": only in B" || c.Worse() {
		t.Errorf("%d diffs, notes %q", len(c.Runs), c.Notes)
	}
	if _, err := FindRuns(t.TempDir()); err == nil {
		t.Error("an empty directory holds runs")
	}
}
