package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// simulated carries out a scenario in the simulator and returns its exit code, its report and its
// output.
func simulated(t *testing.T, dir, scenario string, flags ...string) (int, reports.RunReport, string) {
	t.Helper()
	if !slices.Contains(flags, "--qps") {
		flags = append(flags, "--qps", rate)
	}
	out, err := call(t, append([]string{"run", scenario, "--backend", "sim", "--out", dir}, flags...)...)
	report, readErr := reports.Read(filepath.Join(dir, reports.JSONFile))
	if readErr != nil {
		t.Fatalf("%v; the run said %v\n%s", readErr, err, out)
	}
	return codeOf(t, err), report, out
}

// codeOf is the exit code of an error.
func codeOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exitError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &exit):
		return exit.code
	}
	t.Fatal(err)
	return -1
}

// rate is the load of a simulated run in requests per second: a little more than the pressure that
// scenarios demand needs, and less than the default.
const rate = "110"

// The scenarios of the smoke set pass with the reference, and show violations with any other
// subject. The net (internal/lab) holds the verdicts of all scenarios.
func TestTheSmokeSetEndsAsExpectedInTheSimulator(t *testing.T) {
	for _, s := range scenarios.All() {
		if !s.Limits.Allows(backendSim) || !slices.Contains(s.Labels, "smoke") {
			continue
		}
		expected := map[string]int{"builtin": exitFail, "none": exitFail, "reference": exitPass}
		if s.Name == "quiet" {
			expected["alpha"] = exitFail
		}
		for subject, want := range expected {
			if !s.Limits.AllowsSubject(subject) {
				continue
			}
			t.Run(s.Name+"/"+subject, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "run")
				code, report, out := simulated(t, dir, s.Name, "--subject", subject)
				judgedAgain(t, dir, code)
				if subject == "reference" && report.Verdict.Outcome == invariant.OutcomeKnown { // by what no proxy can prevent
					code = exitPass
				}
				if code != want || report.Metadata.Backend != "sim" || !report.Metadata.Complete {
					t.Errorf("exit code %d, want %d:\n%s", code, want, out)
				}
				if own := ownViolations(report); subject == "builtin" && len(own) > 0 && !slices.ContainsFunc(own, func(told string) bool {
					return strings.Contains(report.Verdict.Sentence, told)
				}) {
					t.Errorf("the headline tells none of what the scenario is about and quiet does not show (%q): %s", own, report.Verdict.Sentence)
				}
				for _, i := range report.Invariants {
					undecided := i.About && i.Outcome == invariant.OutcomeInconclusive && subject != "none"
					if undecided || i.Name == "NoFalseNotFound" && (i.Outcome == invariant.OutcomeFail) != (want == exitFail) {
						t.Errorf("%s: %s %s", i.Name, i.Outcome, i.Reason)
					}
				}
			})
		}
	}
}

// judgedAgain checks that the file of a run gives the same report as the history in the memory of
// the run.
func judgedAgain(t *testing.T, dir string, code int) {
	t.Helper()
	file := filepath.Join(dir, reports.JSONFile)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, "judge", dir); codeOf(t, err) != code {
		t.Errorf("judged again: %v, want exit code %d", err, code)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("judged again, the report is another: %v\n%s", err, cmp.Diff(string(before), string(after)))
	}
}

// ownViolations returns the violations of invariants that the scenario tests, without findings 2
// and 46, which are all that quiet shows. A headline about such a violation contains some of the
// returned words.
func ownViolations(r reports.RunReport) (words []string) {
	for _, i := range r.Invariants {
		for _, e := range i.Evidence {
			if i.About && (e.Known == nil || e.Known.Finding != 2 && e.Known.Finding != 46) {
				words = append(words, i.Name+" was violated", fmt.Sprintf(" to %d request", e.Count))
			}
		}
	}
	return words
}

// On servers of another owner, the remaining part of a scenario must still prove something, at the
// lower rate. The reference passes it under enough pressure. Without a proxy it violates what its
// control must violate.
func TestWhatOnlyReadsStillProvesSomething(t *testing.T) {
	for _, s := range scenarios.All() {
		plan := s.Plan(scenario.Parameters{Servers: 3, From: run.DefaultFrom, To: run.DefaultTo, Bounds: history.DefaultBounds, ReadOnly: true})
		if plan.OnlyReads() != nil || !s.Limits.Allows(backendSim) {
			continue
		}
		for subject, want := range map[string]int{"reference": exitPass, "none": exitFail} {
			t.Run(s.Name+"/"+subject, func(t *testing.T) {
				t.Parallel()
				code, report, out := simulated(t, filepath.Join(t.TempDir(), "run"), s.Name, "--subject", subject, "--only-reads", "--qps", fmt.Sprint(run.GentleQPS))
				if subject == "reference" && report.Verdict.Outcome == invariant.OutcomeKnown { // by what no proxy can prevent
					code = exitPass
				}
				if code != want || !strings.HasSuffix(report.Reproduce, "--only-reads") {
					t.Errorf("exit code %d, want %d; reproduced by %s:\n%s", code, want, report.Reproduce, out)
				}
				for _, i := range report.Invariants {
					if subject == s.Control.Subject && slices.Contains(s.Control.Invariants, i.Name) && i.Outcome != invariant.OutcomeFail {
						t.Errorf("%s is %s, and the control must violate it", i.Name, i.Outcome)
					}
				}
			})
		}
	}
	_, err := call(t, "run", "peer-crash", "--backend", "sim", "--only-reads", "--out", t.TempDir())
	if codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), "--only-reads: peer-crash does more: step 2, kill a") {
		t.Errorf("a crash that only reads: %v", err)
	}
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	histories := map[string][]byte{}
	for name, seed := range map[string]string{"first": "7", "again": "7", "other": "8"} {
		simulated(t, filepath.Join(dir, name), "restart-during-partition", "--seed", seed)
		content, err := os.ReadFile(run.Dir(filepath.Join(dir, name)).History())
		if err != nil {
			t.Fatal(err)
		}
		histories[name] = bytes.ReplaceAll(content, []byte("--seed "+seed), nil)
	}
	if !bytes.Equal(histories["first"], histories["again"]) {
		t.Error("two runs of one seed left different histories")
	}
	if bytes.Equal(histories["first"], histories["other"]) {
		t.Error("two seeds left the same history")
	}
}

func TestASimulatedRunSaysHowMuchTimeItWasAndLeavesWhatOthersDo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, report, out := simulated(t, dir, "quiet", "--servers", "5", "--qps", "100")
	for _, want := range []string{"of virtual time", "trace "} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if len(report.Servers) != 5 || !strings.Contains(report.Reproduce, "run quiet --backend sim") {
		t.Errorf("the report has %d servers, and %q to reproduce it", len(report.Servers), report.Reproduce)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range left {
		names = append(names, f.Name())
	}
	if got, want := strings.Join(names, " "), "history.jsonl junit.xml report.html report.json run.json"; got != want {
		t.Errorf("it left %s, want %s", got, want)
	}
	if again, err := call(t, "judge", dir); codeOf(t, err) != exitFail || !strings.Contains(again, "csinodes/status") {
		t.Errorf("judged again: %v\n%s", err, again)
	}
}

func TestTheSimulatorRefusesWhatItCannotDo(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"a cluster to hold":             {[]string{"--keep"}, "--keep means nothing with --backend sim"},
		"a binary":                      {[]string{"--binary", "kube-apiserver@v1.37.1=/bin/true"}, "--binary means nothing"},
		"etcd, the default too":         {[]string{"--etcd", binaries.DefaultEtcd}, "--etcd means nothing"},
		"a version that does not exist": {[]string{"--from", "v1.36.2"}, "v1.36.3, v1.36.5, v1.37.1"},
		"more servers than it can":      {[]string{"--servers", "101"}, "2 to 100"},
		"a subject that there is none":  {[]string{"--subject", "beta"}, "builtin, reference, none, alpha"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, err := call(t, append([]string{"run", "quiet", "--backend", "sim"}, c.flags...)...)
			if codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want wrong usage that says %q", err, c.want)
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("it left %v, error %v", left, err)
			}
		})
	}
	_, err := call(t, "run", "quiet", "--subject", "alpha")
	if codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), "the backend local has builtin, reference, none") {
		t.Errorf("subject alpha on local: %v", err)
	}
}

func TestDryRunOfTheSimulator(t *testing.T) {
	t.Chdir(t.TempDir())
	out, err := call(t, "run", "rolling-upgrade", "--dry-run", "--backend", "sim", "--servers", "64")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"replace b by v1.37.1", "a, v1.36.3, with upstream-1.36", `"action": "replace"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run does not show %q", want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("it left %v, error %v", left, err)
	}
}
