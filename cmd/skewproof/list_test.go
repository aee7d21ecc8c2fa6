package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/scenarios"
)

func TestListForProgramsIsComplete(t *testing.T) {
	for form, parse := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
	} {
		out, err := call(t, "list", "-o", form)
		if err != nil {
			t.Fatal(err)
		}
		var listed []suite.Listed
		if err := parse([]byte(out), &listed); err != nil {
			t.Fatal(err)
		}
		for i, s := range scenarios.All() {
			if i >= len(listed) || listed[i].Name != s.Name || len(listed[i].About) != len(s.About) || listed[i].Happens != s.Happens {
				t.Errorf("%s: scenario %s is not listed in its place", form, s.Name)
			}
		}
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		line  string
		has   []string
		lacks []string
	}{
		{"list", []string{"UPGRADES", "  rolling-upgrade ", "  many-peers ", "scenarios. 'skewproof list NAME' describes one"}, []string{"Must hold"}},
		{"list --labels network&&!slow", []string{"NETWORK", "  peer-partition "}, []string{"UPGRADES", "rolling-upgrade"}},
		{"list rolling-upgrade", []string{"rolling-upgrade\n", "Must hold: ", "Must fail: subject none, which violates "}, []string{"quiet"}},
		{"list hostile-headers quiet -o name", []string{"quiet\nhostile-headers\n"}, []string{"rolling-upgrade"}},
	} {
		out, err := call(t, strings.Fields(c.line)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.has {
			if !strings.Contains(out, want) {
				t.Errorf("%s: it lacks %q:\n%s", c.line, want, out)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(out, not) {
				t.Errorf("%s: it has %q:\n%s", c.line, not, out)
			}
		}
	}
	// A scenario that runs on no process has no minutes.
	out, err := call(t, "list", "many-peers", "-o", "json")
	if err != nil || strings.Contains(out, `"minutes"`) {
		t.Errorf("error %v, output:\n%s", err, out)
	}
	for line, says := range map[string]string{
		"list rolling-upgrad": `did you mean "rolling-upgrade"`, "list -o xml": `--output "xml": want wide, name, json or yaml`, "list --labels nosuch": "choose no scenario",
	} {
		if _, err := call(t, strings.Fields(line)...); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}

// On a terminal that is 140 columns wide, all scenarios fit on one screen, each once, with a letter
// for each of its labels.
func TestListInColumnsFitsOneScreen(t *testing.T) {
	all, err := suite.List("")
	if err != nil {
		t.Fatal(err)
	}
	for width, most := range map[int]int{140: 48, 200: 36, 20: len(all) + 12} {
		var out strings.Builder
		if err := listColumns(&out, all, width); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) > most {
			t.Errorf("a terminal of width %d: %d lines, want at most %d", width, len(lines), most)
		}
		for _, line := range lines[:len(lines)-1] {
			if len(line) > width && width >= 50 {
				t.Errorf("a terminal of width %d: a line has %d characters: %s", width, len(line), line)
			}
		}
		words := strings.Fields(out.String())
		for _, s := range all {
			if at := slices.Index(words, s.Name); at < 0 || words[at+1] != minutesOf(s) {
				t.Errorf("a terminal of width %d: %s is not listed with its minutes", width, s.Name)
			} else if letters := lettersOf(s); letters != "" && words[at+2] != letters || len(letters) != len(s.Labels) {
				t.Errorf("a terminal of width %d: %s has labels %q, shown as %q", width, s.Name, s.Labels, words[at+2])
			}
		}
	}
}
