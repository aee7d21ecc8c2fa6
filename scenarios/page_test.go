package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/scenario"
)

// TestCataloguePage checks that docs/scenarios.md is generated from the catalogue.
func TestCataloguePage(t *testing.T) {
	golden.Hold(t, "../docs/scenarios.md", cataloguePage())
}

func cataloguePage() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Scenarios

This page is made from the catalogue in [scenarios/](../scenarios), which has %d scenarios. FROM is
the older version, TO the newer one.

Every [invariant](invariants.md) judges every scenario. *About* names the invariants that the
scenario tests. If a core invariant among them stays inconclusive, the run proves nothing. An
extended invariant, which demands more than the KEP (see [conformance](conformance.md)), may stay
inconclusive, unless `+"`--strict`"+` is given.

*Control* is the proof that a scenario can fail: a subject, or a planted defect, that must violate
all the named invariants.
`, len(All()))
	family := scenario.Family("")
	for _, s := range All() {
		if s.Family != family {
			family = s.Family
			fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(string(family[:1]))+string(family[1:]))
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s\n\n", s.Name, golden.Wrap(s.Happens, ""), golden.Wrap("**Must hold:** "+s.Holds, ""))
		item := func(format string, a ...any) { b.WriteString(golden.Wrap("- "+fmt.Sprintf(format, a...), "  ") + "\n") }
		item("Source: %s", s.Source)
		item("About: %s", strings.Join(s.About, ", "))
		switch c := s.Control; {
		case c.Subject != "":
			item("Control: subject `%s` violates %s", c.Subject, strings.Join(c.Invariants, ", "))
		case c.Defect != "":
			item("Control: the planted defect `%s` violates %s", c.Defect, strings.Join(c.Invariants, ", "))
		}
		if len(s.Limits.Backends) > 0 {
			item("Runs on %s only, %s", strings.Join(s.Limits.Backends, ", "), s.Limits.Reason)
		}
		if len(s.Limits.Subjects) > 0 {
			item("For subjects %s only, for the same reason", strings.Join(s.Limits.Subjects, ", "))
		}
		if len(s.Labels) > 0 {
			item("Labels: %s", strings.Join(s.Labels, ", "))
		}
	}
	return b.String()
}
