package conformance

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/skewproof/skewproof/reports"
)

// A spec whose run was under way before it began takes no time; in the JUnit file it takes as long as the run.
func TestJUnitShowsWhatRunsTook(t *testing.T) {
	spec := func(name string, left ...outcome) types.SpecReport {
		s := types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: name, State: types.SpecStatePassed, RunTime: 250 * time.Millisecond}
		for _, o := range left {
			s.ReportEntries = append(s.ReportEntries, types.ReportEntry{Name: entry, Value: types.WrapEntryValue(asJSON(o))})
		}
		return s
	}
	r := types.Report{SpecReports: types.SpecReports{
		spec("a-scenario", outcome{Scenario: &reports.ConformanceScenario{DurationSeconds: 81.5}}),
		spec("a-control", outcome{Control: &reports.ControlRun{DurationSeconds: 42}}),
		spec("skipped", outcome{Scenario: &reports.ConformanceScenario{}}),
		spec("nothing-left"),
	}}
	junit, err := junitOf(r, reports.ConformanceReport{Result: reports.ResultPassed})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a-scenario": "81.5", "a-control": "42", "skipped": "0.25", "nothing-left": "0.25"} {
		_, after, found := strings.Cut(string(junit), `name="[It] `+name+`"`)
		if _, after, _ = strings.Cut(after, ` time="`); !found || !strings.HasPrefix(after, want+`"`) {
			t.Errorf("%s does not take %s s:\n%s", name, want, junit)
		}
	}
	if r.SpecReports[0].RunTime != 250*time.Millisecond {
		t.Error("Ginkgo's own report was changed")
	}
}

// No CI system is to take a suite for green that shows nothing, though none of its specs failed: as without any control run.
func TestJUnitIsNotGreenWhereNothingWasShown(t *testing.T) {
	const why = "there was no control run; 1 of 1 scenarios passed core"
	spec := func(state types.SpecState) types.SpecReport {
		return types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: "quiet", State: state}
	}
	for name, c := range map[string]struct {
		spec             types.SpecState
		result           reports.Result
		failures, errors int
	}{
		"passed":                 {types.SpecStatePassed, reports.ResultPassed, 0, 0},
		"passed, and no control": {types.SpecStatePassed, reports.ResultInconclusive, 1, 0},
		"all skipped":            {types.SpecStateSkipped, reports.ResultInconclusive, 1, 0},
		"failed":                 {types.SpecStateFailed, reports.ResultFailed, 1, 0}, // which one, the spec says
		"ended early":            {types.SpecStateAborted, reports.ResultInconclusive, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ended := types.SpecStateFailed | types.SpecStateAborted
			r := types.Report{SuiteSucceeded: !c.spec.Is(ended), SpecReports: types.SpecReports{spec(c.spec)}}
			junit, err := junitOf(r, reports.ConformanceReport{Result: c.result, Sentence: why})
			if err != nil {
				t.Fatal(err)
			}
			var got reporters.JUnitTestSuites
			if err := xml.Unmarshal(junit, &got); err != nil {
				t.Fatal(err)
			}
			if got.Failures != c.failures || got.Errors != c.errors {
				t.Errorf("%d failures and %d errors, want %d and %d:\n%s", got.Failures, got.Errors, c.failures, c.errors, junit)
			}
			if shown := c.result == reports.ResultPassed || c.spec.Is(ended); strings.Contains(string(junit), why) == shown {
				t.Errorf("that %q is said is %v:\n%s", why, !shown, junit)
			}
		})
	}
}
