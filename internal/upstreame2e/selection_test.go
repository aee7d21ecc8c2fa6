package upstreame2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/reports"
)

// newest is what 'e2e.test --list-tests' prints in the newest version that skewproof is tested
// with, without most specs of nodes, storage, scheduling, scaling and Windows.
const newest = "testdata/list-v1.37.txt"

func listOf(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(newest))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseList(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryRuleOfTheSelectionMatchesASpec(t *testing.T) {
	s, err := DefaultSelection()
	if err != nil {
		t.Fatal(err)
	}
	all := listOf(t)
	if unmatched := s.Unmatched(all); len(unmatched) > 0 {
		t.Errorf("these patterns match no spec: correct or remove them: %q", unmatched)
	}
	chosen, left, err := s.Choose(all, nil)
	if err != nil || len(chosen) < 150 {
		t.Errorf("%d specs are chosen (%v): want 150 or more", len(chosen), err)
	}
	if len(left) != len(s.Skip) {
		t.Errorf("%d of %d rules of skip leave something out of the focus: remove the others", len(left), len(s.Skip))
	}
	for _, name := range chosen {
		if strings.Contains(name, "Webhook") || strings.Contains(name, "[sig-windows]") {
			t.Errorf("%q is chosen, and needs a node", name)
		}
	}
}

func TestASpecOfTheUnmatchedRuleIsMissed(t *testing.T) {
	s, err := ParseSelection([]byte("focus:\n- {pattern: '^a', reason: r}\nskip:\n- {pattern: z, reason: r}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Unmatched([]string{"a b"}); !cmp.Equal(got, []string{"z"}) {
		t.Errorf("got %q, want z", got)
	}
}

func TestSpecsAreChosen(t *testing.T) {
	s, err := ParseSelection([]byte(`
focus:
- {pattern: '^\[api\] ', reason: the API}
skip:
- {pattern: node, reason: it needs a node}
- {pattern: slow, reason: it is slow}
- {pattern: never, reason: there is none}
`))
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"[api] a", "[api] a slow node", "[api] b", "[api] b slow", "[other] a"}
	for _, tc := range []struct {
		focus  string
		chosen []string
		left   []reports.UpstreamLeft
	}{
		{"", []string{"[api] a", "[api] b"}, []reports.UpstreamLeft{{Reason: "it needs a node", Specs: 1}, {Reason: "it is slow", Specs: 1}}},
		{"b", []string{"[api] b"}, []reports.UpstreamLeft{{Reason: "it is slow", Specs: 1}}},
	} {
		var focus *regexp.Regexp
		if tc.focus != "" {
			focus = regexp.MustCompile(tc.focus)
		}
		chosen, left, err := s.Choose(all, focus)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.chosen, chosen) + cmp.Diff(tc.left, left); diff != "" {
			t.Errorf("focus %q (-want +got):\n%s", tc.focus, diff)
		}
	}
	if _, _, err := s.Choose(all, regexp.MustCompile("other")); err == nil || !strings.Contains(err.Error(), "matches none") {
		t.Errorf("a focus outside the selection: got %v", err)
	}
}

func TestSelectionsThatAreWrong(t *testing.T) {
	for want, text := range map[string]string{
		"focus is empty":         "skip: []",
		"has no reason":          "focus:\n- pattern: a\n",
		"has no pattern":         "focus:\n- reason: a\n",
		"missing closing )":      "focus:\n- {pattern: '(a', reason: r}\n",
		`unknown field "patern"`: "focus:\n- {patern: a, reason: r}\n",
		"already set in map":     "focus:\n- {pattern: a, pattern: b, reason: r}\n",
	} {
		if _, err := ParseSelection([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestListsThatAreWrong(t *testing.T) {
	for want, text := range map[string]string{
		"it lists no spec":    "The following spec names can be used with 'ginkgo run --focus/skip':\n\n",
		`it lists "x" twice`:  "    a.go:1: x\n    b.go:2: x\n",
		"not FILE:LINE: NAME": "    a.go:1: x\n    y\n",
	} {
		if _, err := ParseList(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAProgramThatListsNothing(t *testing.T) {
	if _, err := List(t.Context(), "/bin/true"); err == nil || !strings.Contains(err.Error(), "/bin/true") {
		t.Errorf("got %v", err)
	}
	if _, err := List(t.Context(), "/nonexistent/e2e.test"); err == nil {
		t.Error("a program that is not there listed specs")
	}
}

// Unmatched returns the patterns that match no spec, in their order.
func (s Selection) Unmatched(all []string) (patterns []string) {
	for _, r := range slices.Concat(s.Focus, s.Skip) {
		if !slices.ContainsFunc(all, r.re.MatchString) {
			patterns = append(patterns, r.Pattern)
		}
	}
	return patterns
}
