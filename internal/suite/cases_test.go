package suite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// A refused run leaves no directory, so no message names its directory.
func TestARefusedScenarioHasNoDirectory(t *testing.T) {
	s := reports.ConformanceScenario{}
	k := Case{dir: "scenarios/quiet", Outcome: Outcome{Scenario: &s}}
	k.finish(Finished{Code: codeUsage, Problem: "exit code 4: not here", Took: 50 * time.Millisecond})
	if s.Core.Result != reports.ResultSkipped || s.Directory != "" || s.DurationSeconds != 0 {
		t.Errorf("%s, in %q, after %v s; want it skipped, with neither", s.Core.Result, s.Directory, s.DurationSeconds)
	}
}

// Servers that run already may all have one version. Then every proxy passes, and so does no proxy.
func TestNothingPassesWhereAllServersAreOfOneVersion(t *testing.T) {
	extended := reports.Invariant{Verdict: invariant.Verdict{Name: "Available", Grade: invariant.GradeExtended, Outcome: invariant.OutcomePass}}
	for _, c := range []struct {
		to      string
		outcome invariant.Outcome
		want    reports.Result
	}{
		{"v1.37.1", invariant.OutcomePass, reports.ResultPassed},
		{"v1.36.3", invariant.OutcomePass, reports.ResultInconclusive},
		{"v1.36.3", invariant.OutcomeFail, reports.ResultFailed},
	} {
		run := report(c.outcome, core("NoFalseNotFound", c.outcome), extended)
		run.Metadata.From, run.Metadata.To = "v1.36.3", c.to
		var s reports.ConformanceScenario
		(&Case{Outcome: Outcome{Scenario: &s}}).finish(Finished{Report: run})
		if s.Core.Result != c.want || (s.Core.Reason == "") != (c.want == reports.ResultPassed) {
			t.Errorf("to %s, %s: %+v, want %s", c.to, c.outcome, s.Core, c.want)
		}
		if passes := s.Extended.Result == reports.ResultPassed; passes != (c.to != "v1.36.3") {
			t.Errorf("to %s: extended %+v", c.to, s.Extended)
		}
	}
}

// suiteOf is a suite of two scenarios and their control runs, all of which passed.
func suiteOf(t *testing.T) (c *Conformance, cases []*Case) {
	t.Helper()
	c = &Conformance{Spec: run.Spec{Backend: "local"}, Labels: "quiet || peer-crash"}
	cases, unproven, err := c.Cases()
	if err != nil || len(cases) != 4 || len(unproven) != 0 {
		t.Fatalf("%d cases, unproven %v, error %v", len(cases), unproven, err)
	}
	for _, k := range cases {
		if k.Scenario != nil {
			k.refuse(reports.ResultPassed, "")
		} else {
			k.Control.Result, k.Control.Reason = reports.ResultPassed, ""
		}
	}
	return c, cases
}

// A refused control run proves nothing and disproves nothing. If all control runs are refused,
// nothing shows that the run could have failed.
func TestARefusedControlLeavesItsScenarioUnproven(t *testing.T) {
	for refused, want := range map[int]reports.Result{0: reports.ResultPassed, 1: reports.ResultPassed, 2: reports.ResultInconclusive} {
		c, cases := suiteOf(t)
		for _, k := range cases[4-refused:] {
			k.finish(Finished{Code: codeUsage, Problem: "exit code 4: not here"})
		}
		r := c.report(cases, nil, time.Now(), true)
		if r.Result != want || len(r.Control.Runs) != 2-refused || len(r.Control.Unproven) != refused {
			t.Errorf("%d refused: %s (%s): %d control runs, %d unproven; want %s", refused, r.Result, r.Sentence, len(r.Control.Runs), len(r.Control.Unproven), want)
		}
	}
}

// A suite with a part that was not run, for whatever reason, shows less than it was asked to show.
// It never passes, even if all other parts passed.
func TestASuiteThatDidNotGetToItsEndNeverPasses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(cases []*Case)
		ended  bool
		want   reports.Result
	}{
		"as it should be":                 {func([]*Case) {}, false, reports.ResultPassed},
		"a scenario was not reached":      {func(k []*Case) { k[1].refuse(reports.ResultSkipped, reports.NotReached) }, false, reports.ResultInconclusive},
		"a control run was not reached":   {func(k []*Case) { k[3].Control.Reason = reports.NotReached }, false, reports.ResultInconclusive},
		"a run was interrupted":           {func(k []*Case) { k[1].Interrupted = true }, false, reports.ResultInconclusive},
		"the suite was ended in any case": {func([]*Case) {}, true, reports.ResultInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			suite, cases := suiteOf(t)
			c.change(cases)
			r := suite.report(cases, nil, time.Now(), !c.ended)
			if r.Result != c.want || r.Metadata.Complete != (c.want == reports.ResultPassed) || len(r.Scenarios) != 2 || len(r.Control.Runs) != 2 {
				t.Errorf("%s (%s), complete %v, %d scenarios, %d control runs; want %s", r.Result, r.Sentence, r.Metadata.Complete, len(r.Scenarios),
					len(r.Control.Runs), c.want)
			}
		})
	}
}

// The report names the scenarios without a control run, so that readers do not overestimate their
// pass.
func TestScenariosWithoutAControlAreNamed(t *testing.T) {
	c := &Conformance{Spec: run.Spec{Backend: "local"}, Labels: "safety"}
	cases, unproven, err := c.Cases()
	if err != nil || len(unproven) == 0 || !strings.Contains(unproven[0].Reason, "planted defect") {
		t.Fatalf("unproven %v, error %v", unproven, err)
	}
	if got := c.report(cases, unproven, time.Now(), true).Control.Unproven; !slices.Equal(got, unproven) {
		t.Errorf("unproven are %v, want %v", got, unproven)
	}
}

// Only a passed case is a pass. Every other case says why.
func TestTheResultOfACase(t *testing.T) {
	const passed, failed, skipped = reports.ResultPassed, reports.ResultFailed, reports.ResultSkipped
	for name, c := range map[string]struct {
		core, extended reports.ProfileResult
		strict         bool
		want           reports.Result
		why            string
	}{
		"passed":                           {reports.ProfileResult{Result: passed}, reports.ProfileResult{Result: failed}, false, passed, ""},
		"failed beyond":                    {reports.ProfileResult{Result: passed}, reports.ProfileResult{Result: failed, Reason: "r"}, true, failed, "failed, extended: r"},
		"nothing seen beyond":              {reports.ProfileResult{Result: passed}, reports.ProfileResult{Result: skipped, Reason: "r"}, true, passed, ""},
		"skipped":                          {reports.ProfileResult{Result: skipped, Reason: "r"}, reports.ProfileResult{}, false, skipped, "skipped, core: r"},
		"violated":                         {reports.ProfileResult{Result: failed, Violated: []string{"A", "B"}, Reason: "r"}, reports.ProfileResult{}, false, failed, "failed, core: violated A, B: r"},
		"of which the report does not say": {reports.ProfileResult{Result: ""}, reports.ProfileResult{}, false, "", ", core: "},
	} {
		k := Case{Spec: run.Spec{Strict: c.strict}, Outcome: Outcome{Scenario: &reports.ConformanceScenario{Core: c.core, Extended: c.extended}}}
		if got, why := k.Result(); got != c.want || why != c.why {
			t.Errorf("%s: %q, because %q; want %q, because %q", name, got, why, c.want, c.why)
		}
	}
}
