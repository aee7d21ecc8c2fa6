package upstreame2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

func TestExpectedFailuresOfTheRepositoryNameSpecs(t *testing.T) {
	c, err := DefaultExpected()
	if err != nil {
		t.Fatal(err)
	}
	all := listOf(t)
	if unknown := c.Unknown(all, "v1.37.1"); len(unknown) > 0 {
		t.Errorf("no spec has these names: %q", unknown)
	}
	s, err := DefaultSelection()
	if err != nil {
		t.Fatal(err)
	}
	chosen, _, err := s.Choose(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c {
		if !slices.Contains(chosen, e.Spec) {
			t.Errorf("%q is not chosen, so it need not be expected to fail", e.Spec)
		}
	}
}

// An entry covers what it names, and nothing near it.
func TestAnExpectedFailureIsNarrow(t *testing.T) {
	c, err := ParseExpected([]byte(`
- spec: first
  paths: [old]
  subjects: [builtin]
  from: [v1.36]
  tests: [v1.37]
  reason: known
- spec: second
  reason: everywhere
`))
	if err != nil {
		t.Fatal(err)
	}
	at := Circumstances{Path: reports.PathOld, Subject: "builtin", From: "v1.36.3", Tests: "v1.37.1"}
	if got := c.Why("first", at); got != "known" {
		t.Errorf("got %q", got)
	}
	near := map[string]Circumstances{}
	for name, change := range map[string]func(*Circumstances){
		"path": func(c *Circumstances) { c.Path = reports.PathBalancer }, "subject": func(c *Circumstances) { c.Subject = "reference" },
		"from": func(c *Circumstances) { c.From = "v1.35.4" }, "tests": func(c *Circumstances) { c.Tests = "v1.36.3" },
	} {
		changed := at
		change(&changed)
		near[name] = changed
	}
	for name, in := range near {
		if got := c.Why("first", in); got != "" {
			t.Errorf("another %s: got %q, want no excuse", name, got)
		}
		if got := c.Why("second", in); got != "everywhere" {
			t.Errorf("another %s: got %q", name, got)
		}
	}
	if got := c.Why("first one", at); got != "" {
		t.Errorf("another spec: got %q, want no excuse", got)
	}
	if got := c.Unknown([]string{"second"}, "v1.37.1"); !slices.Equal(got, []string{"first"}) {
		t.Errorf("entries without a spec: got %q, want the first", got)
	}
	if got := c.Unknown(nil, "v1.36.3"); got != nil {
		t.Errorf("entries for other tests: got %q", got)
	}
}

func TestExpectedFailuresThatAreWrong(t *testing.T) {
	for want, text := range map[string]string{
		"has no reason":          "- spec: x\n",
		"names no spec":          "- reason: x\n",
		`path "sideways"`:        "- {spec: x, reason: y, paths: [sideways]}\n",
		`subject "mine"`:         "- {spec: x, reason: y, subjects: [mine]}\n",
		`version "v1.36.3"`:      "- {spec: x, reason: y, from: [v1.36.3]}\n",
		`version "1.36"`:         "- {spec: x, reason: y, tests: ['1.36']}\n",
		`unknown field "paths2"`: "- {spec: x, reason: y, paths2: []}\n",
	} {
		if _, err := ParseExpected([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
