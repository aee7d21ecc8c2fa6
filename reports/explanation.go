package reports

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports/findings"
)

// Explanation says what an invariant demands, and what its verdicts mean.
type Explanation struct {
	// Name and Grade are those of the catalogue. MustHold is the invariant as a sentence, and Source
	// is the clause that demands it.
	Name     string          `json:"name"`
	Grade    invariant.Grade `json:"grade"`
	MustHold string          `json:"mustHold"`
	Source   string          `json:"source"`
	// Inconclusive are the reasons why a verdict can be inconclusive. NotJudged says on which
	// requests that have to be passed on the invariant does not rule.
	Inconclusive []string `json:"inconclusive"`
	NotJudged    []string `json:"notJudged,omitempty"`
	// Outside is true if the invariant is judged for servers that skewproof did not start too.
	Outside bool `json:"outside"`
	// Scenarios test the invariant. Findings are the numbers of the findings whose defects violate it.
	Scenarios []string `json:"scenarios,omitempty"`
	Findings  []int    `json:"findings,omitempty"`
}

// Explain explains an invariant. scenarios are the names of those that test it.
func Explain(i invariant.Invariant, scenarios []string, known findings.Catalogue) Explanation {
	e := Explanation{
		Name: i.Name, Grade: i.Grade, MustHold: i.Sentence, Source: i.Source, Outside: i.Outside,
		Inconclusive: i.Doubts(), NotJudged: i.Unruled(), Scenarios: scenarios,
	}
	for _, f := range known {
		if slices.ContainsFunc(f.Matches, func(m findings.Match) bool { return slices.Contains(m.Invariants, i.Name) }) {
			e.Findings = append(e.Findings, f.Number)
		}
	}
	return e
}

// gradeMeans says what a grade means for the verdict of a run.
var gradeMeans = map[invariant.Grade]string{
	invariant.GradeCore:     "core: KEP-4020, or every use of a control plane, demands it, and it decides the verdict of every run",
	invariant.GradeExtended: "extended: it goes beyond the KEP; reports show it, and it counts only with --strict",
}

// WriteExplanations lists invariants for a terminal.
func WriteExplanations(w io.Writer, all []Explanation) error {
	var b strings.Builder
	columns := Columns(w)
	for _, e := range all {
		fmt.Fprintf(&b, "%s (%s)\n", e.Name, e.Grade)
		b.WriteString(Wrapped("    ", e.MustHold, columns))
	}
	fmt.Fprintf(&b, "\n%d invariants. 'skewproof explain NAME' explains one.\n", len(all))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteExplanation explains an invariant for a terminal.
func WriteExplanation(w io.Writer, e Explanation) error {
	var b strings.Builder
	columns := Columns(w)
	b.WriteString(e.Name + "\n\n" + Wrapped("  ", e.MustHold, columns))
	list := func(heading string, items ...string) {
		if len(items) == 0 {
			return
		}
		b.WriteString("\n" + heading + "\n")
		bullet := "  - "
		if len(items) == 1 {
			bullet = "  "
		}
		for _, item := range items {
			b.WriteString(Wrapped(bullet, item, columns))
		}
	}
	list("DEMANDED BY", e.Source)
	list("GRADE", gradeMeans[e.Grade])
	list("INCONCLUSIVE, UNLESS VIOLATED, IF", e.Inconclusive...)
	list("A REQUEST THAT HAS TO BE PASSED ON IS NOT JUDGED IF", e.NotJudged...)
	if !e.Outside {
		list("NOT JUDGED WITH --backend existing", "it needs the servers' logs, or knowledge of their processes")
	}
	if len(e.Scenarios) > 0 {
		list("SCENARIOS THAT TEST IT", someOf(e.Scenarios))
	}
	if len(e.Findings) > 0 {
		var numbers []string
		for _, f := range e.Findings {
			numbers = append(numbers, strconv.Itoa(f))
		}
		list("FINDINGS THAT EXPLAIN VIOLATIONS OF IT", strings.Join(numbers, ", ")+"; 'skewproof finding "+numbers[0]+"' describes the first")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
