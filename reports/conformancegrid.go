package reports

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// conformanceGrid has a row for each scenario that was run. Its columns are the causes of
// violations, and the invariants.
type conformanceGrid struct {
	*described // nil if nobody reads the titles
	Causes     []gridCause
	Invariants []invariant.Invariant
	Rows       []gridRow
}

// gridCause is a finding, or what no finding explains.
type gridCause struct {
	Finding   int // 0 is NEW
	Scenarios int // how many scenarios show it
}

// Title heads the column.
func (c gridCause) Title() string {
	if c.Finding == 0 {
		return "NEW"
	}
	return fmt.Sprintf("finding %d", c.Finding)
}

type gridRow struct {
	Scenario string
	Core     Result
	Causes   []bool // by column
	Verdicts []invariant.Outcome
}

// newConformanceGrid leaves out scenarios that were not run. Findings beyond the KEP count as
// causes, too. The causes that most scenarios show come first, and NEW before all.
func newConformanceGrid(c ConformanceReport) (g conformanceGrid) {
	shown := map[int]int{} // scenarios by finding
	causes := func(s ConformanceScenario) (all []int) {
		all = slices.Concat(s.Core.Findings, s.Extended.Findings)
		if s.Core.New+s.Extended.New > 0 {
			all = append(all, 0)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	run := slices.DeleteFunc(c.NewFirst(), func(s ConformanceScenario) bool { return s.Directory == "" && s.Core.Result == ResultSkipped })
	for _, s := range run {
		for _, cause := range causes(s) {
			shown[cause]++
		}
	}
	for cause, scenarios := range shown { // in any order: they are sorted
		g.Causes = append(g.Causes, gridCause{cause, scenarios})
	}
	slices.SortFunc(g.Causes, func(a, b gridCause) int {
		switch {
		case a.Finding == 0 || b.Finding == 0:
			return a.Finding - b.Finding
		case a.Scenarios != b.Scenarios:
			return b.Scenarios - a.Scenarios
		}
		return a.Finding - b.Finding
	})
	g.Invariants = invariant.All()
	for _, s := range run {
		row := gridRow{Scenario: s.Name, Core: s.Core.Result}
		of := causes(s)
		for _, cause := range g.Causes {
			row.Causes = append(row.Causes, slices.Contains(of, cause.Finding))
		}
		for _, i := range g.Invariants {
			p := s.Core
			if i.Grade != invariant.GradeCore {
				p = s.Extended
			}
			row.Verdicts = append(row.Verdicts, p.verdict(i.Name))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// verdict is the verdict on an invariant of the profile. It is inconclusive if no run was judged,
// or if the report is of a skewproof that did not know the invariant.
func (p ProfileResult) verdict(name string) invariant.Outcome {
	switch {
	case slices.Contains(p.Violated, name):
		return invariant.OutcomeFail
	case slices.Contains(p.Held, name):
		return invariant.OutcomePass
	}
	return invariant.OutcomeInconclusive
}
