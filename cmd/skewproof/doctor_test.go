package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/recorded"
)

func TestDoctor(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if out, err := call(t, "doctor", "sim"); err != nil || !strings.Contains(out, "✓ sim\n") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
	t.Setenv("PATH", t.TempDir()) // no docker
	if out, err := call(t, "doctor", "sim", "kind"); codeOf(t, err) != exitNotRun || !strings.Contains(out, "✓ sim\n✗ kind: ") {
		t.Errorf("without an engine: error %v, output:\n%s", err, out)
	}
	if _, err := call(t, "doctor", "moon"); codeOf(t, err) != exitUsage || !strings.Contains(err.Error(), `backend "moon": want sim, local, kind`) {
		t.Errorf("a backend that does not exist: %v", err)
	}
}

func TestVersionNamesTheDefaults(t *testing.T) {
	out, err := call(t, "version")
	if want := "by default from " + run.DefaultFrom + " to " + run.DefaultTo; err != nil || !strings.HasPrefix(out, "skewproof ") || !strings.Contains(out, want) {
		t.Errorf("error %v, output:\n%s\nwant %q", err, out, want)
	}
}

// A shell asks the program itself for completions.
func TestCompletion(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var names []string
	for _, s := range scenarios.All() {
		names = append(names, s.Name)
	}
	for line, want := range map[string][]string{
		"run ":              names,
		"run --subject ":    {"builtin", "none", "reference"},
		"run --backend ":    {"existing", "kind", "local", "sim"},
		"run quiet --from ": recorded.Released(), // the cache is empty
	} {
		words := strings.Split(line, " ")
		out, err := call(t, append([]string{"__complete"}, words...)...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, offered := range strings.Split(out, "\n") {
			if word, _, _ := strings.Cut(offered, "\t"); word != "" && !strings.HasPrefix(word, ":") {
				got = append(got, word)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
