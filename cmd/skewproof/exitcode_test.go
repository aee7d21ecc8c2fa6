package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// The same standing has the same word with and without --known. Only the exit code differs.
func TestExitCodesOfVerdicts(t *testing.T) {
	for _, c := range []struct {
		why            string
		standing       invariant.Standing
		plain, lenient int
	}{
		{"pass", invariant.Standing{}, exitPass, exitPass},
		{"known", invariant.Standing{Violated: true}, exitFail, exitPass},
		{"new", invariant.Standing{Violated: true, New: true}, exitFail, exitFail},
		{"inconclusive", invariant.Standing{Undecided: true}, exitInconclusive, exitInconclusive},
		{"known and inconclusive", invariant.Standing{Violated: true, Undecided: true}, exitFail, exitInconclusive},
		{"new and inconclusive", invariant.Standing{Violated: true, New: true, Undecided: true}, exitFail, exitFail},
	} {
		for known, want := range map[bool]int{false: c.plain, true: c.lenient} {
			if got := exitCodeOf(judged(c.standing, known, nil)); got != want {
				t.Errorf("%s, known %t: exit code %d, want %d", c.why, known, got, want)
			}
		}
	}
	broken := errors.New("broken")
	if err := judged(invariant.Standing{}, true, broken); !errors.Is(err, broken) {
		t.Errorf("an error becomes %v", err)
	}
	for result, want := range map[reports.Result]int{
		reports.ResultPassed: exitPass, reports.ResultFailed: exitFail, reports.ResultInconclusive: exitInconclusive,
	} {
		if got := exitCodeOf(resultError(result, nil)); got != want {
			t.Errorf("%s: exit code %d, want %d", result, got, want)
		}
	}
}

// The line above make's own says what the code means, and how to let pass what is known.
func TestTheLineBeforeMake(t *testing.T) {
	t.Setenv(madeBy, "")
	known := &exitError{code: exitFail, word: "KNOWN"}
	if line := beforeMake(known); line != "" {
		t.Errorf("without make: %s", line)
	}
	t.Setenv(madeBy, "1")
	for want, e := range map[string]*exitError{
		"KNOWN, exit code 1: something that counts was violated; with KNOWN=1, what is known passes. The next line is make's own.": known,
		"INCONCLUSIVE, exit code 2: nothing was proved. The next line is make's own.":                                              {code: exitInconclusive, word: "INCONCLUSIVE"},
		"exit code 1: the --help of the command says what it means. The next line is make's own.":                                  {code: exitFail},
		"exit code 3: the command could not be carried out. The next line is make's own.":                                          {code: exitNotRun},
	} {
		if line := beforeMake(e); line != want {
			t.Errorf("%s, want %s", line, want)
		}
	}
}

func TestTheFileOfKnownMayStandAlone(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"run --known quiet":           "run --known quiet",
		"run quiet --known":           "run quiet --known",
		"run --known own.yaml quiet":  "run --known=own.yaml quiet",
		"run quiet --known " + own:    "run quiet --known=" + own,
		"run --known=a.yaml quiet":    "run --known=a.yaml quiet",
		"shell DIR -- --known x.yaml": "shell DIR -- --known x.yaml",
		"judge --known " + dir:        "judge --known " + dir,
	} {
		words, want := strings.Fields(words), strings.Fields(want)
		if got := joinKnown(words); !slices.Equal(got, want) {
			t.Errorf("%q becomes %q, want %q", words, got, want)
		}
	}
}
