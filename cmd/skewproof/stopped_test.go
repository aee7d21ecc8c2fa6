package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// stoppedAfter is a context that ends when its error has been asked for so many times. The
// simulator asks after a fixed number of events, so the run always stops at the same one.
type stoppedAfter struct {
	context.Context
	left int
}

func (c *stoppedAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A run that is stopped leaves its history and a report, which is not a pass. The exit code is that
// of the part that was recorded: 1 if something that counts was violated, and with --known if
// something is NEW. Otherwise it is 2.
func TestAStoppedRunIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		subject, known string
		after          int
		code           int
		outcome        invariant.Outcome
	}{
		"at once":                 {"builtin", "", 0, exitInconclusive, invariant.OutcomeInconclusive},
		"which no proxy prevents": {"reference", "true", 30, exitInconclusive, invariant.OutcomeInconclusive},
		"known":                   {"builtin", "", 30, exitFail, invariant.OutcomeInconclusive},
		"known, which is allowed": {"builtin", "true", 30, exitInconclusive, invariant.OutcomeInconclusive},
		"NEW":                     {"alpha", "true", 30, exitFail, invariant.OutcomeFail},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			var out, progress bytes.Buffer
			root := newRoot()
			words := []string{"run", "quiet", "--backend", "sim", "--subject", c.subject, "--out", dir}
			if c.known != "" {
				words = append(words, "--known")
			}
			root.SetArgs(words)
			root.SetOut(&out)
			root.SetErr(&progress)
			err := root.ExecuteContext(&stoppedAfter{t.Context(), c.after})
			if exitCodeOf(err) != c.code {
				t.Errorf("exit code %d (%v), want %d", exitCodeOf(err), err, c.code)
			}
			if !strings.Contains(progress.String(), "the run was stopped; the report covers what was recorded until then, and is no pass") ||
				strings.Count(out.String(), "ended early: the run was stopped: ") == 0 {
				t.Errorf("it says:\n%s%s", &progress, &out)
			}
			h, err := history.ReadFile(run.Dir(dir).History())
			if err != nil || !strings.HasPrefix(h.End.Error, "the run was stopped: ") || len(h.Operations) == 0 && c.after > 0 {
				t.Errorf("%d operations, end %+v, error %v", len(h.Operations), h.End, err)
			}
			report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
			if err != nil || report.Verdict.Outcome != c.outcome {
				t.Errorf("outcome %s, error %v", report.Verdict.Outcome, err)
			}
			for _, i := range report.Invariants {
				if i.Outcome == invariant.OutcomePass {
					t.Errorf("%s passes", i.Name)
				}
			}
			again := []string{"judge", dir}
			if c.known != "" {
				again = append(again, "--known")
			}
			if _, err := call(t, again...); codeOf(t, err) != c.code {
				t.Errorf("judged again it ends with %v", err)
			}
		})
	}
}

// To stop a run violates nothing, whatever is under way.
func TestAStopIsNoViolation(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios.All() {
		if !s.Limits.Allows(backendSim) || !slices.Contains(s.Labels, "smoke") {
			continue
		}
		root := newRoot()
		var out bytes.Buffer
		root.SetArgs([]string{"run", s.Name, "--backend", "sim", "--subject", "reference", "--known", "--out", filepath.Join(t.TempDir(), s.Name)})
		root.SetOut(&out)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(&stoppedAfter{t.Context(), 25}); exitCodeOf(err) != exitInconclusive {
			t.Errorf("%s ends with %v:\n%s", s.Name, err, &out)
		}
	}
}

// Only the process that the user started says that it is stopping, and it says it once.
func TestStoppingIsSaidByTheOutermostProcess(t *testing.T) {
	t.Parallel()
	const stopping = "stopping; a second Ctrl-C ends everything at once"
	dir := filepath.Join(t.TempDir(), "run")
	words := []string{"run", "long-campaign", "--backend", "sim", "--subject", "reference", "--servers", "12", "--out", dir}
	var said bytes.Buffer
	cmd := program(t, &said, words...)
	breakOff(t, cmd, dir, "")
	if code := cmd.ProcessState.ExitCode(); code != exitInconclusive || strings.Count(said.String(), stopping) != 1 {
		t.Errorf("exit code %d, it said:\n%s", code, &said)
	}
	dir += "-of-a-suite"
	spec := run.Spec{Scenario: "long-campaign", Backend: backendSim, Subject: "reference", Servers: 12, Out: dir}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	said.Reset()
	cmd = program(t, &said, "run-spec")
	cmd.Stdin = bytes.NewReader(data)
	breakOff(t, cmd, dir, "")
	if code := cmd.ProcessState.ExitCode(); code != exitInconclusive || strings.Contains(said.String(), "stopping") {
		t.Errorf("as a part of a suite: exit code %d, it said:\n%s", code, &said)
	}
}
