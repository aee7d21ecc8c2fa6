package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// quietRun carries out the scenario quiet on a subject.
func quietRun(t *testing.T, subject string, words ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), subject)
	out, err := call(t, append([]string{"run", "quiet", "--backend", "sim", "--subject", subject, "--out", dir}, words...)...)
	if _, missing := os.Stat(filepath.Join(dir, reports.JSONFile)); missing != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestDiffInEveryFormat(t *testing.T) {
	a, b := quietRun(t, "builtin"), quietRun(t, "builtin", "--label", "my <b>patch</b>")
	for format, parts := range map[string][]string{
		formatText:     {"NOTHING NEW: ", "label: my <b>patch</b>", "Skewed       A", "Skewed, passed on to a peer", "decide nothing"},
		formatMarkdown: {"**✓** B has no kind", `label: my \<b\>patch\</b\>`, "<details>", "| still |"},
		formatHTML:     {"<!DOCTYPE html>", "label: my &lt;b&gt;patch&lt;/b&gt;", "default-src &#39;none&#39;"},
	} {
		out, err := call(t, "diff", a, b, "-o", format)
		if exitCodeOf(err) != exitPass {
			t.Errorf("%s: %v", format, err)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("%s: want %q in\n%s", format, part, out)
			}
		}
		file := filepath.Join(t.TempDir(), "diff")
		said, err := call(t, "diff", a, b, "--format", format, "--output", file)
		written, missing := os.ReadFile(file)
		if err != nil || missing != nil || said != "" || string(written) != out {
			t.Errorf("%s to a file: %v, %v; it said %q", format, err, missing, said)
		}
	}
}

func TestDiffRefusesWrongUsage(t *testing.T) {
	a, other := quietRun(t, "builtin"), quietRun(t, "reference")
	for _, c := range []struct {
		words []string
		code  int
		says  string
	}{
		{[]string{a, a, "-o", "pdf"}, exitUsage, `--format "pdf": want text, markdown or html`},
		{[]string{a, a, "--output", ""}, exitUsage, "--output is empty"},
		{[]string{a}, exitUsage, "usage: "},
		{[]string{a, other}, exitNotRun, "quiet, reference, sim"},
		{[]string{a, filepath.Join(a, "none")}, exitNotRun, "no such file"},
		{[]string{a, a, "--output", filepath.Join(a, "none", "x")}, exitNotRun, "write "},
	} {
		out, err := call(t, append([]string{"diff"}, c.words...)...)
		if exitCodeOf(err) != c.code || err == nil || !strings.Contains(err.Error(), c.says) || out != "" {
			t.Errorf("%q: exit code %d, %v; want %d and %q; it said %q", c.words, exitCodeOf(err), err, c.code, c.says, out)
		}
	}
}

// The test compares campaigns of two policies over the same schedules.
func TestDiffOfSearches(t *testing.T) {
	search := func(policy string, words ...string) string {
		dir := filepath.Join(t.TempDir(), policy)
		if out, err := call(t, append([]string{"explore", "--policy", policy, "--first", "200", "--seeds", "40", "--out", dir}, words...)...); exitCodeOf(err) > exitInconclusive {
			t.Fatalf("%v\n%s", err, out)
		}
		return dir
	}
	reference, upstream := search("reference"), search("upstream-1.37")
	out, err := call(t, "diff", upstream, reference)
	if exitCodeOf(err) != exitPass || !strings.Contains(out, " 0 still, ") || !strings.Contains(out, "\nfixed   ") {
		t.Errorf("exit code %d:\n%s", exitCodeOf(err), out)
	}
	if out, err := call(t, "diff", reference, upstream); exitCodeOf(err) != exitFail || !strings.HasPrefix(out, "NEW: ") {
		t.Errorf("exit code %d:\n%s", exitCodeOf(err), out)
	}
	if _, err := call(t, "diff", reference, search("reference", "--servers", "2")); exitCodeOf(err) != exitNotRun || !strings.Contains(err.Error(), "different schedules") {
		t.Errorf("other schedules: %v", err)
	}
}
