package conformance

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// What was refused has left nothing: nobody is sent to a directory that there is not.
func TestARefusedScenarioHasNoDirectory(t *testing.T) {
	s := reports.ConformanceScenario{Directory: "scenarios/quiet"}
	judgeScenario(&s, Finished{Code: codeUsage, Problem: "exit code 4: not here", Took: 50 * time.Millisecond})
	if s.Core.Result != reports.ResultSkipped || s.Directory != "" || s.DurationSeconds != 0 {
		t.Errorf("%s, in %q, after %v s; want it skipped, with neither", s.Core.Result, s.Directory, s.DurationSeconds)
	}
}

// Servers that run already may all be of one version. Then every proxy passes, and none as well.
func TestNothingPassesWhereAllServersAreOfOneVersion(t *testing.T) {
	extended := reports.Invariant{Name: "Available", Grade: invariant.GradeExtended, Verdict: invariant.OutcomePass}
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
		judgeScenario(&s, Finished{Report: run})
		if s.Core.Result != c.want || (s.Core.Reason == "") != (c.want == reports.ResultPassed) {
			t.Errorf("to %s, %s: %+v, want %s", c.to, c.outcome, s.Core, c.want)
		}
		if passes := s.Extended.Result == reports.ResultPassed; passes != (c.to != "v1.36.3") {
			t.Errorf("to %s: extended %+v", c.to, s.Extended)
		}
	}
}
