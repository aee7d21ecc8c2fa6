package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios/conformance"
)

func TestBenchRepeatsScenarios(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	cmd := program(t, &output, "bench", "quiet", "peer-crash", "--backend", "sim", "--runs", "2", "--parallel", "2", "--subject", "none", "--out", dir)
	if err := cmd.Run(); err != nil { // though what is repeated fails
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

// Ctrl-C ends what is under way, and what was done until then is shown.
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

// What had not begun has said nothing: nobody is sent to a log that there is not.
func TestBenchInterruptedBetweenRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	queue := conformance.NewQueue(ctx, conformance.Program{Path: "/nosuch"}, 1)
	defer queue.Close()
	dir := filepath.Join(t.TempDir(), "01", "quiet")
	b := &benched{name: "quiet", dirs: []string{dir}, queued: []*conformance.Queued{queue.Add(time.Minute, dir, "quiet")}}
	err := (&benchFlags{runs: 1}).collect(ctx, []*benched{b}, io.Discard)
	if want := "run 1 of quiet: ended before it had begun"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// Verdicts that differ are counted once for each invariant of each scenario.
func TestBenchCountsDifferingVerdicts(t *testing.T) {
	sampled := func(wall int, outcomes ...invariant.Outcome) sample {
		s := sample{wall: time.Duration(wall) * time.Second, operations: 100 * wall}
		for i, o := range outcomes {
			s.verdicts = append(s.verdicts, reports.Invariant{Name: []string{"NoLoop", "NoCrash"}[i], Verdict: o})
		}
		return s
	}
	const pass, fail, unknown = invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive
	var out bytes.Buffer
	differs := &benched{words: []string{"x"}, samples: []sample{sampled(30, pass, pass), sampled(10, fail, pass), sampled(20, unknown, pass)}}
	same := &benched{words: []string{"y"}, samples: []sample{sampled(1, fail, fail), sampled(1, fail, fail)}}
	if code := codeOf(t, summarize(&out, []*benched{same})); code != exitPass {
		t.Errorf("exit code %d where nothing differs, want %d", code, exitPass)
	}
	if code := codeOf(t, summarize(&out, []*benched{{words: []string{"z"}, samples: same.samples[:1]}, {words: []string{"never"}}})); code != exitInconclusive {
		t.Errorf("exit code %d where nothing ran twice, want %d", code, exitInconclusive)
	}
	out.Reset()
	if code := codeOf(t, summarize(&out, []*benched{differs, same})); code != exitInconclusive {
		t.Errorf("exit code %d where a verdict differs, want %d", code, exitInconclusive)
	}
	for _, want := range []string{"skewproof run x; runs: 3\n", "10.0    20.0  30.0", "pass 1, fail 1, inconclusive 1\n", "pass 3\n", "fail 2\n", "1 of 4 verdicts differed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &out)
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
