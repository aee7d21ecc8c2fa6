package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run with the known defects of released versions fails; with --known it passes, and says why.
func TestKnownFailuresPass(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "quiet")
	out, err := call(t, "run", "quiet", "--backend", "sim", "--out", dir)
	if codeOf(t, err) != exitFail || !strings.Contains(out, "All violations are known: finding 2.") {
		t.Fatalf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	out, err = call(t, "judge", dir, "--known")
	if codeOf(t, err) != exitPass || !strings.HasPrefix(out, "FAIL: ") {
		t.Errorf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	junit, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if err != nil || strings.Contains(string(junit), "<failure") || !strings.Contains(string(junit), "known: violated") {
		t.Errorf("%v, junit.xml:\n%s", err, junit)
	}
}

// What no finding is about stays a failure: that of a cluster without any proxy, for example.
func TestWhatIsNotKnownFails(t *testing.T) {
	out, err := call(t, "run", "quiet", "--backend", "sim", "--subject", "none", "--known", "--out", filepath.Join(t.TempDir(), "none"))
	if codeOf(t, err) != exitFail || strings.Contains(out, "known") {
		t.Errorf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
}

func TestFindingsOfOnesOwnAreReadBeforeTheRun(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte("kind: Finding\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "quiet")
	out, err := call(t, "run", "quiet", "--backend", "sim", "--known="+own, "--out", dir)
	if codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), own) {
		t.Errorf("exit code %d, error %v, output:\n%s", codeOf(t, err), err, out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the run was begun")
	}
}
