package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
)

// A run with the known defects of released versions fails; with --known it passes, and says why.
func TestKnownFailuresPass(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "quiet")
	out, err := call(t, "run", "quiet", "--backend", "sim", "--out", dir)
	if codeOf(t, err) != exitFail || !strings.HasPrefix(out, "KNOWN: ") || !strings.Contains(out, "(finding 2); other violations: finding 46. Nothing is new.") {
		t.Fatalf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	out, err = call(t, "judge", dir, "--known")
	if codeOf(t, err) != exitPass || !strings.HasPrefix(out, "KNOWN: ") {
		t.Errorf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	junit, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if err != nil || strings.Contains(string(junit), "<failure") || !strings.Contains(string(junit), "known: violated") {
		t.Errorf("%v, junit.xml:\n%s", err, junit)
	}
}

// With --known, a run that does not decide what it is about does not pass, although findings
// explain all that it violates.
func TestKnownFailuresDoNotHideThatNothingWasProved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "quiet")
	out, err := call(t, "run", "quiet", "--backend", "sim", "--qps", "5", "--known", "--out", dir)
	if codeOf(t, err) != exitInconclusive || !strings.HasPrefix(out, "INCONCLUSIVE: ") || !strings.Contains(out, "(finding 2). Nothing is new.") {
		t.Errorf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	if junit, err := os.ReadFile(filepath.Join(dir, "junit.xml")); err != nil || !strings.Contains(string(junit), "<error") {
		t.Errorf("%v, junit.xml:\n%s", err, junit)
	}
	if out, err := call(t, "judge", dir); codeOf(t, err) != exitFail || !strings.HasPrefix(out, "INCONCLUSIVE: ") {
		t.Errorf("without --known, something that counts was violated: exit code %d, output:\n%s", codeOf(t, err), out)
	}
}

// That holds for every command that judges: 2 with --known, and 1 without it.
func TestWhatIsNotDecidedIsNotKnown(t *testing.T) {
	for _, line := range []string{
		"conformance --backend sim --labels quiet --qps 5",
		"matrix --backend sim --scenarios quiet --subjects builtin --pairs v1.36.3..v1.37.1", // without a negative control
	} {
		for known, want := range map[string]int{" --known": exitInconclusive, "": exitFail} {
			words := strings.Fields(line + known + " --out " + filepath.Join(t.TempDir(), "out"))
			if out, err := call(t, words...); exitCodeOf(err) != want || !strings.Contains(out, "INCONCLUSIVE") {
				t.Errorf("%s%s: exit code %d (%v), output:\n%s", line, known, exitCodeOf(err), err, out)
			}
		}
	}
}

// A violation that no finding explains stays a failure, such as one of a cluster without a proxy.
func TestWhatIsNotKnownFails(t *testing.T) {
	out, err := call(t, "run", "quiet", "--backend", "sim", "--subject", "none", "--known", "--out", filepath.Join(t.TempDir(), "none"))
	if codeOf(t, err) != exitFail || !strings.HasPrefix(out, "FAIL: ") {
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

// Drafted findings explain the violations that they were drafted from, and nothing else.
func TestDraftedFindingsExplainTheRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "alpha")
	if out, err := call(t, "run", "quiet", "--backend", "sim", "--subject", "alpha", "--qps", rate, "--out", dir); codeOf(t, err) != exitFail {
		t.Fatalf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	own := filepath.Join(t.TempDir(), "own.yaml")
	if out, err := call(t, "judge", dir, "--write-known", own); codeOf(t, err) != exitFail {
		t.Fatalf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	before, err := os.ReadFile(own)
	if err != nil || !strings.Contains(string(before), "Only a person") {
		t.Fatalf("%v:\n%s", err, before)
	}
	if out, err := call(t, "judge", dir, "--known="+own); codeOf(t, err) != exitPass || strings.Contains(out, "NEW") {
		t.Errorf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	if _, err := call(t, "judge", dir, "--write-known", own); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), "it exists") {
		t.Errorf("a second time: %v", err)
	}
	if after, err := os.ReadFile(own); err != nil || string(after) != string(before) {
		t.Errorf("it was written over: %v", err)
	}
	none := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := call(t, "judge", dir, "--known="+own, "--write-known", none); codeOf(t, err) != exitPass {
		t.Errorf("with nothing NEW: %v", err)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a file was written of nothing")
	}
	nowhere := filepath.Join(t.TempDir(), "no", "own.yaml")
	if _, err := call(t, "judge", dir, "--write-known", nowhere); codeOf(t, err) != exitNotRun || !strings.Contains(err.Error(), nowhere) {
		t.Errorf("into no directory: %v", err)
	}
}

// Several runs can be judged at once: runs that are named, and runs in the directory of a suite.
func TestSeveralRunsAreJudgedAtOnce(t *testing.T) {
	base := t.TempDir()
	for dir, subject := range map[string]string{"scenarios/one": "alpha", "scenarios/two": "reference", "control/one": "none"} {
		_, _ = call(t, "run", "quiet", "--backend", "sim", "--subject", subject, "--qps", rate, "--out", filepath.Join(base, dir))
	}
	own := filepath.Join(base, "own.yaml")
	out, err := call(t, "judge", base, "--write-known", own)
	if codeOf(t, err) != exitFail || strings.Count(out, "report.html") != 2 || !strings.Contains(out, filepath.Join("scenarios", "two")) {
		t.Errorf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	if out, err := call(t, "judge", filepath.Join(base, "scenarios", "one"), filepath.Join(base, "scenarios", "two"), "--known="+own); codeOf(t, err) != exitPass {
		t.Errorf("exit code %d, output:\n%s", codeOf(t, err), out)
	}
	if _, err := call(t, "judge", t.TempDir()); codeOf(t, err) != exitNotRun || !strings.Contains(err.Error(), "history.jsonl") {
		t.Errorf("an empty directory: %v", err)
	}
}

// --known=FILE means the same for searches as for runs.
func TestSearchesTakeFindingsOfOnesOwn(t *testing.T) {
	base := t.TempDir()
	explore := func(name string, words ...string) (string, int) {
		dir := filepath.Join(base, name)
		out, err := call(t, append([]string{"exhaust", "--policy", "alpha-1.28", "--servers", "2", "--resources", "1", "--events", "1", "--out", dir}, words...)...)
		if code := exitCodeOf(err); code > exitInconclusive {
			t.Fatalf("%s: %v", name, err)
		}
		return out, exitCodeOf(err)
	}
	if out, code := explore("plain"); code != exitFail || !strings.Contains(out, "NEW: ") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	own := filepath.Join(base, "own.yaml")
	text := `{apiVersion: skewproof/v1alpha1, kind: Finding, number: 1000, title: all of it, symptom: S, grade: core, disclosure: public, matches: [{` +
		`invariants: [` + strings.Join(invariantNames(), ", ") + `], mechanisms: [whole resource, subresource, watch, upgrade, forged hop, merged discovery, group document,` +
		` own discovery, legacy discovery, OpenAPI, process], answers: ["404 resource", "404", "404 object", "200", "503", "500", "no answer (timeout)", ""]}]}`
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := explore("known", "--known="+own); code != exitPass || !strings.Contains(out, "known (finding 1000): all of it") || strings.Contains(out, "NEW: ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if _, err := call(t, "explore", "--seeds", "1", "--known="+filepath.Join(base, "none.yaml"), "--out", filepath.Join(base, "x")); exitCodeOf(err) != exitUsage {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(base, "x")); err == nil {
		t.Error("the search was begun")
	}
}

func invariantNames() (names []string) {
	for _, i := range invariant.All() {
		names = append(names, i.Name)
	}
	return names
}
