package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

func TestBenchRepeatsScenarios(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	cmd := program(t, &output, "bench", "quiet", "peer-crash", "--backend", "sim", "--runs", "2", "--qps", rate, "--parallel", "2", "--subject", "none", "--out", dir)
	if err := cmd.Run(); err != nil { // bench passes although the repeated runs fail
		t.Fatalf("%v; it said:\n%s", err, &output)
	}
	for _, want := range []string{"run 2 of 2: peer-crash", "skewproof run quiet --backend sim --subject none", "fail 2", fmt.Sprintf("\n0 of %d verdicts differed", 2*len(invariant.All()))} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("it does not say %q but:\n%s", want, &output)
		}
	}
	for _, run := range []string{"01/quiet", "02/peer-crash"} {
		if _, err := os.Stat(filepath.Join(dir, run, reports.HTMLFile)); err != nil {
			t.Errorf("a run left no report: %v", err)
		}
	}
}

// Ctrl-C ends the active runs, and bench shows the results until then.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	cmd := program(t, &output, "bench", "quiet", "long-campaign", "--backend", "sim", "--runs", "1", "--out", dir)
	breakOff(t, cmd, dir, "01/long-campaign")
	if code := cmd.ProcessState.ExitCode(); code != exitNotRun {
		t.Errorf("exit code %d, want %d", code, exitNotRun)
	}
	for _, want := range []string{"run 1 of long-campaign: interrupted", "run quiet --backend sim --subject builtin", "runs: 1\n", "runs: 0\n", "no verdict could be compared"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("it does not say %q but:\n%s", want, &output)
		}
	}
}

func TestBenchRefusesWrongUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for words, want := range map[string]string{
		"":                                  "which scenarios?",
		"quiet --labels smoke":              "names and --labels: give one of them",
		"quiet --runs 0":                    "--runs 0",
		"quiet --parallel 0":                "--parallel 0",
		"quiet --backend moon":              "want local, kind or sim",
		"quiet quiet":                       "named twice",
		"quite":                             `did you mean "quiet"`,
		"--labels smoke&&":                  "write them like",
		"--labels nosuch":                   "choose no scenario",
		"--labels many-peers":               "nothing that runs on local",
		"quiet --backend sim --subject you": "--subject",
	} {
		_, err := call(t, append([]string{"bench"}, strings.Fields(words)...)...)
		if code := codeOf(t, err); code != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d, error %v; want %d and %q", words, code, err, exitUsage, want)
		}
	}
}
