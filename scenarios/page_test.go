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
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n**Must hold:** %s\n\n", s.Name, s.Happens, s.Holds)
		fmt.Fprintf(&b, "- Source: %s\n- About: %s\n", s.Source, strings.Join(s.About, ", "))
		switch c := s.Control; {
		case c.Subject != "":
			fmt.Fprintf(&b, "- Control: subject `%s` violates %s\n", c.Subject, strings.Join(c.Invariants, ", "))
		case c.Defect != "":
			fmt.Fprintf(&b, "- Control: the planted defect `%s` violates %s\n", c.Defect, strings.Join(c.Invariants, ", "))
		}
		if len(s.Limits.Backends) > 0 {
			fmt.Fprintf(&b, "- Runs on %s only, %s\n", strings.Join(s.Limits.Backends, ", "), s.Limits.Reason)
		}
		if len(s.Limits.Subjects) > 0 {
			fmt.Fprintf(&b, "- For subjects %s only, for the same reason\n", strings.Join(s.Limits.Subjects, ", "))
		}
		if len(s.Labels) > 0 {
			fmt.Fprintf(&b, "- Labels: %s\n", strings.Join(s.Labels, ", "))
		}
	}
	return b.String()
}
