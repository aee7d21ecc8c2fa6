package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
)

func TestFindingsAndInvariantsAreExplained(t *testing.T) {
	for line, want := range map[string][]string{
		"finding":     {"   1  404 for an unreachable peer", "core, public; seen: v1.36.3", "'skewproof finding NUMBER'"},
		"finding 2":   {"Finding 2: Subresource of a newer version", "IMPACT\n", "IN AN UPGRADE\n", "CAUSE\n", "command that shows it: make scenario NAME=quiet", " more (-o yaml names all)", "KEP-4020: Goals (if an apiserver can serve"},
		"finding 10":  {"Finding 10: ", "disclosure: withdrawn", "\nCAUSE\n"}, // no upgrade
		"finding 3 1": {"Finding 3: ", "\n\nFinding 1: "},
		"explain":     {"NoFalseNotFound (core)\n", "Available (extended)\n", "'skewproof explain NAME'"},
		"explain NoFalseNotFound": {"  No apiserver answers 404", "DEMANDED BY\n  KEP-4020, Goals", "core: KEP-4020", "skewed operations", "SCENARIOS THAT TEST IT\n  quiet, ",
			"FINDINGS THAT EXPLAIN VIOLATIONS OF IT\n  1, 2, ", "NOT JUDGED IF\n  the server was not ready"},
		"explain available noloop": {"Available\n", "extended: it goes beyond", "\n\nNoLoop\n", "NOT JUDGED WITH --backend existing"},
	} {
		out, err := call(t, strings.Fields(line)...)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s lacks %q:\n%s", line, w, out)
			}
		}
		for text := range strings.SplitSeq(out, "\n") {
			if len([]rune(text)) > 110 {
				t.Errorf("%s: a line has %d columns: %s", line, len([]rune(text)), text)
			}
		}
	}
}

// Every finding and every invariant can be described, whatever it leaves out.
func TestEveryFindingAndInvariantIsDescribed(t *testing.T) {
	for _, f := range findings.All() {
		if out, err := call(t, "finding", strconv.Itoa(f.Number)); err != nil || !strings.Contains(out, f.Title[:20]) || strings.Contains(out, ": \n") {
			t.Errorf("finding %d: %v\n%s", f.Number, err, out)
		}
	}
	for _, i := range invariant.All() {
		if out, err := call(t, "explain", i.Name); err != nil || !strings.HasPrefix(out, i.Name+"\n\n  ") {
			t.Errorf("%s: %v\n%s", i.Name, err, out)
		}
	}
}

func TestExplanationsForPrograms(t *testing.T) {
	for form, parse := range map[string]func([]byte, any) error{
		"json": func(text []byte, into any) error { return json.Unmarshal(text, into) },
		"yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
	} {
		out, err := call(t, "finding", "002", "-o", form) // as the file of the finding is named
		var found []findings.Finding
		if err != nil || parse([]byte(out), &found) != nil || len(found) != 1 || found[0].Number != 2 || len(found[0].Scenarios) < 20 {
			t.Errorf("finding 2 -o %s: %v\n%s", form, err, out)
		}
		out, err = call(t, "explain", "-o", form)
		var all []reports.Explanation
		if err != nil || parse([]byte(out), &all) != nil || len(all) != len(invariant.All()) || len(all[0].Scenarios) < 20 {
			t.Errorf("explain -o %s: %v\n%.300s", form, err, out)
		}
	}
}

func TestUnknownNamesLeadOn(t *testing.T) {
	for line, want := range map[string]string{
		"finding 26":              `no finding "26": there are 1, 2, 3,`,
		"finding two":             `no finding "two"`,
		"finding -o wide":         `--output "wide": want json or yaml`,
		"finding --known nosuch":  "read findings: open nosuch",
		"explain NoFalseNotFond":  `no invariant "NoFalseNotFond": did you mean "NoFalseNotFound"?`,
		"explain quiet":           "quiet is a scenario, not an invariant: 'skewproof list quiet' describes it",
		"explain 2":               "'skewproof finding 2' describes a finding",
		"explain NoLoop -o plain": `--output "plain": want json or yaml`,
	} {
		if _, err := call(t, strings.Fields(line)...); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// A finding of one's own is shown with the others, and its text controls no terminal.
func TestOwnFindingsAreShown(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	text := `{apiVersion: skewproof/v1alpha1, kind: Finding, number: 1000, title: "it \e[31mglows", symptom: S, grade: core, disclosure: public}`
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"finding", "--known", own}, {"finding", "1000", "--known", own}} {
		if out, err := call(t, words...); err != nil || !strings.Contains(out, "it [31mglows") {
			t.Errorf("%q: %v\n%q", words, err, out)
		}
	}
	if _, err := call(t, "finding", "1000"); codeOf(t, err) != exitUsage {
		t.Errorf("without the file: %v", err)
	}
	if got := completed(t, "finding", "--known", own, ""); !strings.Contains(strings.Join(got, "\n"), "\n1000") {
		t.Errorf("it is not completed: %q", got)
	}
}
