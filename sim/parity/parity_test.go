package parity

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

func report(backend string, verdicts ...invariant.Outcome) reports.RunReport {
	r := reports.RunReport{
		Metadata: reports.Metadata{Scenario: "quiet", Backend: backend, Subject: "builtin", From: "v1.36.3", To: "v1.37.1"},
		Servers:  make([]reports.Server, 3),
	}
	for i, v := range verdicts {
		r.Invariants = append(r.Invariants, reports.Invariant{Verdict: invariant.Verdict{Name: []string{"NoLoop", "NoCrash", "Converges"}[i], Outcome: v}})
	}
	return r
}

const (
	pass = invariant.OutcomePass
	fail = invariant.OutcomeFail
	none = invariant.OutcomeInconclusive
)

func TestCompareFindsEveryDifference(t *testing.T) {
	got, err := Compare(report("local", pass, none, fail), report("sim", pass, pass, none))
	if err != nil {
		t.Fatal(err)
	}
	want := []Disagreement{
		{Scenario: "quiet", Subject: "builtin", From: "v1.36.3", To: "v1.37.1", Invariant: "NoCrash", Local: none, Sim: pass},
		{Scenario: "quiet", Subject: "builtin", From: "v1.36.3", To: "v1.37.1", Invariant: "Converges", Local: fail, Sim: none},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := Compare(report("local", pass), report("sim", pass)); len(got) > 0 || err != nil {
		t.Errorf("of two that agree: %v, %v", got, err)
	}
}

func TestOnlyRunsOfOnePlanAreCompared(t *testing.T) {
	for name, change := range map[string]func(*reports.RunReport){
		"both on local":    func(r *reports.RunReport) { r.Metadata.Backend = "local" },
		"other scenario":   func(r *reports.RunReport) { r.Metadata.Scenario = "peer-crash" },
		"other subject":    func(r *reports.RunReport) { r.Metadata.Subject = "none" },
		"other versions":   func(r *reports.RunReport) { r.Metadata.To = "v1.36.3" },
		"fewer servers":    func(r *reports.RunReport) { r.Servers = r.Servers[:2] },
		"fewer invariants": func(r *reports.RunReport) { r.Invariants = r.Invariants[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			sim := report("sim", pass, pass)
			change(&sim)
			if got, err := Compare(report("local", pass, pass), sim); err == nil {
				t.Errorf("they were compared: %v", got)
			}
		})
	}
}

func TestAKnownDisagreementStandsForWhatItSaysAndNoMore(t *testing.T) {
	known, err := decode([]byte(`[
		{"scenario": "quiet", "invariant": "NoCrash", "sim": "fail", "why": "any subject"},
		{"scenario": "quiet", "invariant": "NoCrash", "local": "inconclusive", "sim": "pass", "why": "proves nothing"},
		{"scenario": "quiet", "subject": "builtin", "invariant": "NoLoop", "local": "pass", "sim": "fail", "why": "this only"}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d    Disagreement
		want string
	}{
		{Disagreement{Scenario: "quiet", Subject: "none", Invariant: "NoCrash", Local: pass, Sim: fail}, "any subject"},
		{Disagreement{Scenario: "quiet", Subject: "none", Invariant: "NoCrash", Local: none, Sim: fail}, ""},
		{Disagreement{Scenario: "quiet", Subject: "none", Invariant: "NoCrash", Local: none, Sim: pass}, "proves nothing"},
		{Disagreement{Scenario: "quiet", Subject: "builtin", Invariant: "NoLoop", Local: pass, Sim: fail}, "this only"},
		{Disagreement{Scenario: "quiet", Subject: "none", Invariant: "NoLoop", Local: pass, Sim: fail}, ""},
		{Disagreement{Scenario: "quiet", Subject: "builtin", Invariant: "NoLoop", Local: none, Sim: fail}, ""},
		{Disagreement{Scenario: "quiet", Subject: "none", Invariant: "NoCrash", Local: fail, Sim: pass}, ""},
		{Disagreement{Scenario: "peer-crash", Subject: "none", Invariant: "NoCrash", Local: pass, Sim: fail}, ""},
	} {
		if why, ok := explain(known, c.d); why != c.want || ok != (c.want != "") {
			t.Errorf("%s: explained by %q, want %q", c.d, why, c.want)
		}
	}
}

func TestTheKnownDisagreementsAreOfScenariosAndInvariantsThatThereAre(t *testing.T) {
	for _, k := range All() {
		if _, err := scenarios.Find(k.Scenario); err != nil {
			t.Error(err)
		}
		if !slices.ContainsFunc(invariant.All(), func(i invariant.Invariant) bool { return i.Name == k.Invariant }) {
			t.Errorf("%s: there is no such invariant", k.Disagreement)
		}
		if k.Local == k.Sim && k.Local != "" {
			t.Errorf("%s: that is no disagreement", k.Disagreement)
		}
	}
	for _, broken := range []string{
		`{}`, `[{"scenario": "quiet", "invariant": "NoLoop"}]`, `[{"scenario": "quiet", "why": "so"}]`,
		`[{"invariant": "NoLoop", "why": "so", "scenario": "quiet", "because": 1}]`,
	} {
		if all, err := decode([]byte(broken)); err == nil {
			t.Errorf("%s was read as %v", broken, all)
		}
	}
}
