package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// rendersAgain checks that 'skewproof report' writes a lost page again, and has the exit code and
// the output of the original command.
func rendersAgain(t *testing.T, dir, page string, code int) {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(dir, page))
	if err != nil {
		t.Error(err)
		return
	}
	if err := os.Remove(filepath.Join(dir, page)); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, "report", dir); exitCodeOf(err) != code {
		t.Errorf("skewproof report: %v, want exit code %d", err, code)
	}
	if after, err := os.ReadFile(filepath.Join(dir, page)); err != nil || string(after) != string(before) {
		t.Errorf("%s is another after rendering it again, error %v", page, err)
	}
}

// If a command reads a broken file, the error names the file and the problem, and nothing is
// written.
func TestBrokenFilesAreNamed(t *testing.T) {
	broken := map[string]string{
		"empty": "", "half": `{"apiVersion": "skewproof/v1alpha1", "kind": `, "foreign": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}`,
		"binary": "\x7fELF\x02\x01\x01\x00\x00\xff\xfe", "a list": "[1, 2, 3]\n",
	}
	for file, commands := range map[string][]string{
		reports.JSONFile:        {"report DIR"},
		reports.CampaignJSON:    {"report DIR"},
		reports.ConformanceFile: {"report DIR"},
		reports.MatrixJSON:      {"report DIR"},
		reports.ClientsJSON:     {"report DIR"},
		reports.AblationJSON:    {"report DIR"},
		reports.SmallestJSON:    {"report DIR"},
		"history.jsonl":         {"judge DIR"},
		"found.json":            {"replay FILE"},
	} {
		for what, content := range broken {
			dir := t.TempDir()
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, line := range commands {
				words := strings.Fields(strings.NewReplacer("DIR", dir, "FILE", path).Replace(line))
				_, err := call(t, words...)
				if code := exitCodeOf(err); code != exitNotRun && code != exitUsage || !strings.Contains(err.Error(), path) {
					t.Errorf("%s, %s: exit code %d, %v; want that it could not be run because of %s", line, what, code, err, file)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("%s, %s: they left %v, error %v", file, what, left, err)
			}
		}
	}
}

func TestReportSaysWhatIsMissing(t *testing.T) {
	empty, judged := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(judged, "history.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		empty:                                  "holds no report",
		filepath.Join(empty, "x"):              "no such file",
		judged:                                 "skewproof judge",
		filepath.Join(judged, "history.jsonl"): "is a file; give the directory",
		strings.Repeat("x", 300):               "file name too long",
	} {
		if _, err := call(t, "report", dir); exitCodeOf(err) != exitNotRun || !strings.Contains(err.Error(), want) {
			t.Errorf("report %s: %v, want an error that says %q", dir, err, want)
		}
	}
}
