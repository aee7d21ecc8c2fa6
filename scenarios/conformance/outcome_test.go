package conformance

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// People copy command lines out of reports: a shell must make of them the words that they were made of, whatever stands in these.
func TestAShellTakesACommandLineForWhatItWas(t *testing.T) {
	words := []string{"quiet", "v1.30.14+without.batch.v1", "--contexts=a,b", "a && b || !c", "(a)", ""}
	for _, r := range "{},[]~^=*?#;<>|$`'\"\\!%@ \t\n\u00a0é-" {
		words = append(words, string(r), "x"+string(r)+"y", "{a,"+string(r)+"b}", string(r)+"root")
	}
	line := ShellLine(words)
	taken, err := exec.CommandContext(t.Context(), "bash", "-c", "cd /; printf '%s\\0' "+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(taken), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("of %s\na shell makes %q, want %q", line, got, words)
	}
	if line := ShellLine([]string{"skewproof", "run", "--to", "v1.30.14+without.batch.v1", "--pairs=v1..v2,v2..v3"}); strings.Contains(line, "'") {
		t.Errorf("words are quoted that need not be: %s", line)
	}
}

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
