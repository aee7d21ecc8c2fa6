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

func TestMatrixInTheSimulator(t *testing.T) {
	for _, parallel := range []string{"1", "2"} {
		t.Run("parallel "+parallel, func(t *testing.T) {
			t.Parallel()
			matrixInTheSimulator(t, parallel)
		})
	}
}

func matrixInTheSimulator(t *testing.T, parallel string) {
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	cmd := program(t, &output, "matrix", "--backend", "sim", "--scenarios", "quiet", "--subjects", "reference,none,alpha", "--qps", rate, "--out", dir,
		"--pairs", "v1.30.14+without.batch.v1..v1.30.14,v1.36.3..v1.37.1", "--parallel", parallel)
	_ = cmd.Run()
	m, err := reports.ReadMatrix(filepath.Join(dir, reports.MatrixJSON))
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, &output)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitFail { // alpha does not merge discovery
		t.Errorf("exit code %d, want %d; it said:\n%s", code, exitFail, &output)
	}
	if len(m.Cells) != 6 || !m.Metadata.Complete || !strings.Contains(m.Pairs[0].Note, "StorageVersion") {
		t.Fatalf("%d cells of %+v", len(m.Cells), m.Pairs)
	}
	said := output.String()
	for i, c := range m.Cells {
		_, after, found := strings.Cut(said, fmt.Sprintf("%d of 6: %s, quiet, %s: %s, ", i+1, m.Pairs[i/3], []string{"reference", "none", "alpha"}[i%3], c.Core.Result))
		if !found {
			t.Errorf("it does not say in its place what became of %s on %s:\n%s", c.Subject, m.Pairs[c.Pair], &output)
		}
		said = after
		want := reports.ResultFailed
		if c.Subject == "reference" {
			if want = reports.ResultPassed; m.Pairs[c.Pair].To == "v1.37.1" { // finding 46, which no proxy can prevent
				want = reports.ResultKnown
			}
		}
		if c.Core.Result != want || len(c.Verdicts) != len(invariant.All()) {
			t.Errorf("%s on %s: %s (%s) with %d verdicts, want %s", c.Subject, m.Pairs[c.Pair], c.Core.Result, c.Core.Reason, len(c.Verdicts), want)
		}
		if _, err := os.Stat(filepath.Join(dir, c.Directory, reports.HTMLFile)); err != nil {
			t.Errorf("a cell leads to no report: %v", err)
		}
	}
	for _, name := range []string{"matrix.html", "matrix.txt"} {
		rendersAgain(t, dir, name, exitFail)
	}
}

// If a pair cannot be run, its cells say so. The other pairs still run, and nothing is fetched for
// the bad pair.
func TestABadPairIsNoHarmToTheOthers(t *testing.T) {
	t.Parallel()
	const good, bad = "v1.36.3..v1.37.1", "v1.36.x..v1.37.1"
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	cmd := program(t, &output, "matrix", "--backend", "sim", "--scenarios", "quiet", "--subjects", "reference", "--out", dir, "--pairs", bad+","+good)
	_ = cmd.Run()
	m, err := reports.ReadMatrix(filepath.Join(dir, reports.MatrixJSON))
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, &output)
	}
	if len(m.Cells) != 2 || m.Cells[0].Core.Result != reports.ResultSkipped || !strings.Contains(m.Cells[0].Core.Reason, "v1.36.x") || m.Cells[1].Core.Result != reports.ResultKnown {
		t.Errorf("the bad pair must be skipped, and the good one judged: %+v", m.Cells)
	}
}

// Ctrl-C ends the active runs, and the table says which runs had not begun.
func TestMatrixInterruptedInTwo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	cmd := program(t, &output, "matrix", "--backend", "sim", "--scenarios", "long-campaign", "--subjects", "reference,none,alpha", "--pairs", "v1.36.3..v1.37.1",
		"--parallel", "2", "--out", dir)
	breakOff(t, cmd, dir, "1-long-campaign-reference", "1-long-campaign-none")
	m, err := reports.ReadMatrix(filepath.Join(dir, reports.MatrixJSON))
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, &output)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitInconclusive || m.Metadata.Complete || len(m.Cells) != 3 {
		t.Fatalf("exit code %d, complete %v, %d cells; want 3; it said:\n%s", code, m.Metadata.Complete, len(m.Cells), &output)
	}
	if c := m.Cells[2]; c.Core.Result != reports.ResultSkipped || !strings.Contains(c.Core.Reason, "before its turn") || c.Directory != "" {
		t.Errorf("the run that had not begun: %+v", c)
	}
	for _, c := range m.Cells[:2] {
		if c.Core.Result != reports.ResultInconclusive || !strings.Contains(c.Core.Reason, "interrupted") {
			t.Errorf("%s: %+v, want it interrupted", c.Subject, c.Core)
		}
	}
}

func TestMatrixRefusesWrongUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for words, want := range map[string]string{
		"--pairs v1.36.3":                          "write FROM..TO",
		"--scenarios nosuch":                       "no scenario",
		"--subjects nobodys":                       "--subjects",
		"--parallel 0":                             "--parallel 0: want at least 1",
		"--backend existing --parallel 2":          "nothing of this matrix can be run",
		"--pairs 1.2..3.4":                         "nothing of this matrix can be run",
		"--subjects=":                              "no pair, scenario or subject is named",
		"--scenarios quiet,quiet":                  "names quiet twice",
		"--backend moon":                           "nothing of this matrix can be run",
		"--pairs v1.30.14+without.batch..v1.30.14": "names no group and version",
	} {
		_, err := call(t, append([]string{"matrix"}, strings.Fields(words)...)...)
		if code := codeOf(t, err); code != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d, error %v; want %d and %q", words, code, err, exitUsage, want)
		}
	}
}
