package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// A simulated run that is stopped leaves its history and its report, which is not a pass. The exit
// code is that of a run that could not be carried out.
func TestAStoppedSimulatedRunLeavesItsHistory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, progress bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"run", "quiet", "--backend", "sim", "--subject", "reference", "--out", dir})
	root.SetOut(&out)
	root.SetErr(&progress)
	err := root.ExecuteContext(ctx)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitNotRun || !strings.Contains(err.Error(), "the run was stopped") {
		t.Errorf("it ended with %v", err)
	}
	h, err := history.ReadFile(run.Dir(dir).History())
	if err != nil {
		t.Fatal(err)
	}
	report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(h.End.Error, "the run was stopped: ") || report.Verdict.Outcome != invariant.OutcomeInconclusive || !strings.Contains(out.String(), "the run was stopped: ") {
		t.Errorf("the end is %+v, the outcome %s:\n%s", h.End, report.Verdict.Outcome, &out)
	}
	for _, i := range report.Invariants {
		if i.Outcome == invariant.OutcomePass {
			t.Errorf("%s passes", i.Name)
		}
	}
	if _, err := call(t, "judge", dir); codeOf(t, err) != exitInconclusive {
		t.Errorf("judged again it ends with %v", err)
	}
}
