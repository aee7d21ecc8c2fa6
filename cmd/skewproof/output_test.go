package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// judge and report show in every form the run that was judged, with the same exit code.
func TestFormsOfAReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	code, want, _ := simulated(t, dir, "quiet", "--subject", "none")
	if code != exitFail {
		t.Fatalf("exit code %d, want %d", code, exitFail)
	}
	for _, command := range []string{"judge", "report"} {
		for form, parse := range map[string]func(string, any) error{
			"json": func(text string, into any) error { return json.Unmarshal([]byte(text), into) },
			"yaml": func(text string, into any) error { return yaml.UnmarshalStrict([]byte(text), into) },
		} {
			out, err := call(t, command, dir, "-o", form)
			if codeOf(t, err) != exitFail {
				t.Errorf("%s -o %s: %v", command, form, err)
			}
			var got reports.RunReport
			if err := parse(out, &got); err != nil || got.Verdict.Sentence != want.Verdict.Sentence || len(got.Invariants) != len(want.Invariants) {
				t.Errorf("%s -o %s is not the report: %v\n%.300s", command, form, err, out)
			}
		}
		short, err := call(t, command, dir)
		wide, wideErr := call(t, command, dir, "--output", "wide")
		if codeOf(t, err) != exitFail || codeOf(t, wideErr) != exitFail {
			t.Errorf("%s: %v, wide: %v", command, err, wideErr)
		}
		lines := strings.Split(wide, "\n")
		for _, i := range want.Invariants {
			if n := len(startingWith(lines, i.Name)); n != 1 {
				t.Errorf("%s -o wide has %d lines about %s:\n%s", command, n, i.Name, wide)
			}
			if i.Outcome == invariant.OutcomePass && len(startingWith(strings.Split(short, "\n"), i.Name)) != 0 {
				t.Errorf("%s has a line about %s, which held:\n%s", command, i.Name, short)
			}
		}
		if _, err := call(t, command, dir, "-o", "xml"); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), "want wide, json or yaml") {
			t.Errorf("%s -o xml: %v", command, err)
		}
	}
	// Several runs are several documents.
	out, err := call(t, "judge", dir, dir, "-o", "yaml")
	if codeOf(t, err) != exitFail || strings.Count(out, "\n---\n") != 1 || strings.Count(out, "\nkind: ") != 2 {
		t.Errorf("two runs: %v\n%.300s", err, out)
	}
	out, err = call(t, "judge", dir, dir, "-o", "json")
	decoder := json.NewDecoder(strings.NewReader(out))
	for range 2 {
		var got reports.RunReport
		if err := decoder.Decode(&got); err != nil {
			t.Errorf("two runs as JSON: %v", err)
		}
	}
	if codeOf(t, err) != exitFail || decoder.More() {
		t.Errorf("two runs as JSON: %v", err)
	}
}

// startingWith returns the lines that have a sign and then the name of an invariant.
func startingWith(lines []string, name string) (found []string) {
	for _, line := range lines {
		if words := strings.Fields(line); len(words) > 1 && words[1] == name {
			found = append(found, line)
		}
	}
	return found
}
