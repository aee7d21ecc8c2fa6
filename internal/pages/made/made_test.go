package made

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// simulated carries out a run in the simulator and returns the directory with its reports.
func simulated(t *testing.T, spec run.Spec) string {
	t.Helper()
	spec.Backend, spec.Out = scenario.BackendSim, filepath.Join(t.TempDir(), "run")
	result, err := spec.Run(t.Context(), run.Console{Out: io.Discard, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Dir)
}

// hold compares a page with its golden file, which internal/pages opens.
func hold(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var page bytes.Buffer
	if err := write(&page); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, filepath.Join("../testdata/made", name+".html"), page.String())
}

// The pages of runs with each of the four verdicts, and of a suite with all of them.
func TestPagesOfTheFourVerdicts(t *testing.T) {
	suite := reports.ConformanceReport{
		Metadata: reports.ConformanceMetadata{Complete: true}, Product: reports.Product{Name: "all verdicts"},
		Control: reports.ConformanceControl{Runs: []reports.ControlRun{{Scenario: "quiet", Subject: "none", Result: reports.ResultPassed}}},
	}
	for _, c := range []struct {
		want invariant.Outcome
		spec run.Spec
	}{
		{invariant.OutcomeFail, run.Spec{Scenario: "rolling-upgrade", Subject: scenario.SubjectNone}},
		{invariant.OutcomeInconclusive, run.Spec{Scenario: "quiet", QPS: 5}},
		{invariant.OutcomeKnown, run.Spec{Scenario: "rolling-upgrade"}},
		{invariant.OutcomePass, run.Spec{Scenario: "missing-peer-ca-file", Subject: scenario.SubjectReference}},
	} {
		dir := simulated(t, c.spec)
		report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
		if err != nil || report.Verdict.Outcome != c.want {
			t.Fatalf("the run is %s, want %s; error %v", report.Verdict.Outcome, c.want, err)
		}
		suite.Scenarios = append(suite.Scenarios, reports.ConformanceScenario{
			Name: string(c.want), Core: report.InProfile(invariant.GradeCore), Extended: report.InProfile(invariant.GradeExtended),
			CarriedOut: reports.CarriedOut{Directory: "run"},
		})
		hold(t, string(c.want), func(w io.Writer) error {
			page, err := os.ReadFile(filepath.Join(dir, reports.HTMLFile))
			_, _ = w.Write(page)
			return err
		})
	}
	suite.Conclude()
	hold(t, "suite", func(w io.Writer) error { return reports.WriteConformanceHTML(w, suite) })
}

// A comparison of two runs, as long as people get it.
func TestPageOfAComparison(t *testing.T) {
	var runs [2]reports.Compared
	for i := range runs {
		seed := uint64(i + 1)
		opened, err := reports.Open(simulated(t, run.Spec{Scenario: "rolling-upgrade", QPS: 110, Seed: &seed}))
		if err != nil {
			t.Fatal(err)
		}
		opened.Path = []string{"before", "after"}[i]
		runs[i] = opened
	}
	c, err := reports.CompareAll(runs[0], runs[1])
	if err != nil {
		t.Fatal(err)
	}
	hold(t, "comparison", func(w io.Writer) error { return reports.WriteComparisonHTML(w, c, "v0.1.0") })
}

// A search with as many violations as people get.
func TestPageOfASearch(t *testing.T) {
	explored, err := search.Explore(search.Spec{Policy: "upstream-1.37", From: run.DefaultFrom, To: run.DefaultTo, Servers: 3, Resources: 6},
		search.Options{Seeds: 60, ShrinkRuns: 20, CauseRuns: -1, Version: "v0.1.0", Machine: "a machine"})
	if err != nil {
		t.Fatal(err)
	}
	found := explored.Run(t.Context())
	found.ElapsedSeconds, found.SchedulesPerSecond = 10, 6
	found.Parts[0].ElapsedSeconds, found.Parts[0].Workers = 10, 2
	hold(t, "search", func(w io.Writer) error { return reports.WriteCampaignHTML(w, found) })
}
