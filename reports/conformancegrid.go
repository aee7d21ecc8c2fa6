package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// grids are the causes of violations that each scenario shows, and its verdicts on the invariants.
// They leave out scenarios that were not run. Findings beyond the KEP count as causes, too. NEW
// comes first, and then the causes that most scenarios show.
func (c ConformanceReport) grids() (all []section) {
	scenarios := map[int]int{} // that show a finding; those that show what is NEW have the number 0
	causes := func(s ConformanceScenario) []int {
		numbers := slices.Concat(s.Core.Findings, s.Extended.Findings)
		if s.Core.New+s.Extended.New > 0 {
			numbers = append(numbers, 0)
		}
		slices.Sort(numbers)
		return slices.Compact(numbers)
	}
	run := slices.DeleteFunc(c.NewFirst(), func(s ConformanceScenario) bool { return s.Directory == "" && s.Core.Result == ResultSkipped })
	for _, s := range run {
		for _, cause := range causes(s) {
			scenarios[cause]++
		}
	}
	order := slices.SortedFunc(maps.Keys(scenarios), func(a, b int) int {
		return cmp.Or(-truth(a == 0, b == 0), scenarios[b]-scenarios[a], a-b)
	})
	byCause, byInvariant := &table{Head: heads("scenario")}, &table{Head: invariantHeads(heads("scenario"), catalogue())}
	total := []tableCell{{Text: "scenarios that show it"}}
	for _, cause := range order {
		name := fmt.Sprintf("finding %d", cause)
		if cause == 0 {
			name = "NEW"
		}
		byCause.Head = append(byCause.Head, column{Name: name, Narrow: true})
		total = append(total, tableCell{Text: fmt.Sprint(scenarios[cause])})
	}
	for _, s := range run {
		name, shown := tableCell{Text: s.Name, Link: "#scenario-" + s.Name}, causes(s)
		shows, verdicts := []tableCell{name}, []tableCell{name}
		for _, cause := range order {
			cell := tableCell{}
			if slices.Contains(shown, cause) {
				cell = tableCell{Text: sign(invariant.OutcomeFail), Says: "shown", Outcome: invariant.OutcomeFail}
			}
			shows = append(shows, cell)
		}
		for _, i := range invariant.All() {
			p := s.Core
			if i.Grade != invariant.GradeCore {
				p = s.Extended
			}
			verdicts = append(verdicts, verdictCell(p.verdict(i.Name)))
		}
		if len(shown) > 0 {
			byCause.Rows = append(byCause.Rows, shows)
		}
		byInvariant.Rows = append(byInvariant.Rows, verdicts)
	}
	if len(order) > 0 {
		byCause.Rows = append(byCause.Rows, total)
		all = append(all, section{Heading: "Causes", Table: byCause, Note: "The table shows which causes of violations each scenario shows, also " +
			"beyond the KEP. A finding is a known defect of released versions. NEW means that no finding explains it."})
	}
	if len(run) > 0 {
		all = append(all, section{Heading: "Scenarios and invariants", Table: byInvariant, Note: "✓ held, ✗ violated, · inconclusive in this run."})
	}
	return all
}

// invariantHeads adds a narrow column for each invariant.
func invariantHeads(head []column, invariants []MatrixInvariant) []column {
	for _, i := range invariants {
		name := i.Name
		if i.Grade != invariant.GradeCore {
			name += " (beyond the KEP)"
		}
		head = append(head, column{Name: name, Narrow: true})
	}
	return head
}

// verdictCell shows a verdict by its sign.
func verdictCell(o invariant.Outcome) tableCell {
	if o == invariant.OutcomeInconclusive {
		return tableCell{Text: "·", Says: string(o), Outcome: o}
	}
	return tableCell{Text: sign(o), Says: string(o), Outcome: o}
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
