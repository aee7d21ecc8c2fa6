package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/scenario"
)

// TestCataloguePage holds docs/scenarios.md to the catalogue.
func TestCataloguePage(t *testing.T) {
	golden.Hold(t, "../docs/scenarios.md", cataloguePage())
}

func cataloguePage() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Scenarios

All %d, as the catalogue in [scenarios/](../scenarios) has them; this page is made from it. FROM is the older version, TO the newer one. Each is judged by every
[invariant](invariants.md); those named are what it is about. A run in which one of them that the KEP demands stays inconclusive proves nothing; one that goes beyond the KEP
(extended, see [conformance](conformance.md)) may stay so, unless --strict lets it count. *Control* is a subject, or a planted defect, on which it must fail,
by violating all that is named: the proof that it can.
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
		if len(s.Labels) > 0 {
			fmt.Fprintf(&b, "- Labels: %s\n", strings.Join(s.Labels, ", "))
		}
	}
	return b.String()
}
