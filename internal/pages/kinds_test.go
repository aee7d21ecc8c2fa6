package pages

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// simulated carries out a rolling upgrade in the simulator and returns the directory with its
// reports.
func simulated(t *testing.T, seed uint64) string {
	return simulatedOn(t, run.Spec{Scenario: "rolling-upgrade", QPS: 110, Seed: &seed})
}

func simulatedOn(t *testing.T, spec run.Spec) string {
	t.Helper()
	spec.Backend, spec.Out = scenario.BackendSim, filepath.Join(t.TempDir(), "run")
	result, err := spec.Run(t.Context(), run.Console{Out: io.Discard, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Dir)
}

// TestPagesOfRealSize opens pages of simulated runs and of a search. They are as long, and have as
// many charts, marks and tables, as the pages that people get.
func TestPagesOfRealSize(t *testing.T) {
	t.Run("run and comparison", func(t *testing.T) {
		t.Parallel()
		before, after := simulated(t, 1), simulated(t, 2)
		mustHold(t, filepath.Join(before, reports.HTMLFile))
		a, err := reports.Open(before)
		if err != nil {
			t.Fatal(err)
		}
		b, err := reports.Open(after)
		if err != nil {
			t.Fatal(err)
		}
		c, err := reports.CompareAll(a, b)
		if err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if err := reports.WriteComparisonHTML(&page, c, "v0.1.0"); err != nil {
			t.Fatal(err)
		}
		mustHold(t, saved(t, page.Bytes()))
	})
	t.Run("search", func(t *testing.T) {
		t.Parallel()
		explored, err := search.Explore(search.Spec{Policy: "upstream-1.37", From: run.DefaultFrom, To: run.DefaultTo, Servers: 3, Resources: 6},
			search.Options{Seeds: 60, ShrinkRuns: 20, CauseRuns: -1, Version: "v0.1.0", Machine: "a machine"})
		if err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if err := reports.WriteCampaignHTML(&page, explored.Run(t.Context())); err != nil {
			t.Fatal(err)
		}
		mustHold(t, saved(t, page.Bytes()))
	})
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
		page := filepath.Join(simulatedOn(t, c.spec), reports.HTMLFile)
		report, err := reports.Read(filepath.Join(filepath.Dir(page), reports.JSONFile))
		if err != nil || report.Verdict.Outcome != c.want {
			t.Fatalf("the run is %s, want %s; error %v", report.Verdict.Outcome, c.want, err)
		}
		suite.Scenarios = append(suite.Scenarios, reports.ConformanceScenario{
			Name: string(c.want), Core: report.InProfile(invariant.GradeCore), Extended: report.InProfile(invariant.GradeExtended),
			CarriedOut: reports.CarriedOut{Directory: "run"},
		})
		t.Run(string(c.want), func(t *testing.T) {
			t.Parallel()
			mustHold(t, page)
		})
	}
	suite.Conclude()
	t.Run("suite", func(t *testing.T) {
		t.Parallel()
		var page bytes.Buffer
		if err := reports.WriteConformanceHTML(&page, suite); err != nil {
			t.Fatal(err)
		}
		mustHold(t, saved(t, page.Bytes()))
	})
}

var (
	wholePage = regexp.MustCompile(`(?i)<!doctype html>`)
	eyebrow   = regexp.MustCompile(`<p class="eyebrow">([^<]+)</p>`)
)

// A kind of page is a template of a whole page. Each has a golden file, which TestPages opens.
func TestEveryKindOfPageIsOpened(t *testing.T) {
	opened := map[string]bool{}
	for _, file := range goldenPages(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := eyebrow.FindSubmatch(content); found != nil {
			opened[string(found[1])] = true
		}
	}
	kinds := 0
	err := filepath.WalkDir("../../reports/assets", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tmpl" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || !wholePage.Match(content) {
			return err
		}
		kinds++
		if found := eyebrow.FindSubmatch(content); found == nil || !opened[string(found[1])] {
			t.Errorf("%s: no golden file is a page of it, so no test opens one", path)
		}
		return nil
	})
	if err != nil || kinds < 8 {
		t.Errorf("found %d kinds of pages, want at least 8; error %v", kinds, err)
	}
}
