package reports

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/invariant"
)

// page has the tables of the counts under both policies, and what they say in sentences.
func (a *Ablation) page() page {
	p := page{
		Title: fmt.Sprintf("Ablation: %s to %s", a.Spec, a.To), Lead: a.title() + ".", Reproduce: a.Command(), SkewproofVersion: a.SkewproofVersion,
		Document: AblationJSON, TypeMeta: a.TypeMeta,
		Sections: []section{{Note: "The same schedules ran under each policy. Each figure is the number of schedules that violate the " +
			"invariant. A dot means that the change does not affect this number."}},
	}
	with, without := a.counts(a.Spec.String(), a.FromCounts), a.counts(a.To, a.ToCounts)
	for _, r := range a.Rows {
		addCounts(with, r.Switch+"="+shortValue(r.ToValue), r.With, a.FromCounts, removes, a.rises)
		addCounts(without, r.Switch+"="+shortValue(r.FromValue), r.Without, a.ToCounts, func(uint64, uint64) bool { return false }, needed)
	}
	p.Sections = append(p.Sections,
		section{Heading: fmt.Sprintf("%s with one switch as in %s", a.Spec, a.To), Table: with},
		section{Heading: fmt.Sprintf("%s with one switch as in %s", a.To, a.Spec), Table: without})
	if found := a.Findings(); len(found) > 0 {
		p.Sections = append(p.Sections, section{Heading: "What this says", List: items(found)})
	}
	if a.Inputs != "" {
		p.Sections = append(p.Sections, section{Note: "Inputs: " + a.Inputs + "."})
	}
	return p
}

// counts is a table with a column for each kind of violation. Its first row is the unchanged
// policy.
func (a *Ablation) counts(policy string, base []uint64) *table {
	t := &table{Head: heads("change")}
	unchanged := []string{policy + " as it is"}
	for i, c := range a.Columns {
		name := c.String()
		if c.Grade == invariant.GradeExtended {
			name += " (extended)"
		}
		t.Head = append(t.Head, column{name, true, true})
		unchanged = append(unchanged, fmt.Sprint(base[i]))
	}
	t.add(unchanged...)
	return t
}

// addCounts adds the counts with one change. better and worse say which counts are named.
func addCounts(t *table, change string, counts, base []uint64, better, worse func(before, after uint64) bool) {
	row := []tableCell{{Text: change}}
	for i, n := range counts {
		c := tableCell{Text: fmt.Sprint(n), Outcome: invariant.OutcomeInconclusive}
		switch {
		case better(base[i], n):
			c.Outcome = invariant.OutcomePass
		case worse(base[i], n):
			c.Outcome = invariant.OutcomeFail
		case n == base[i]:
			c.Text, c.Says = "·", "unchanged"
		}
		row = append(row, c)
	}
	t.Rows = append(t.Rows, row)
}

// title says what the ablation compares.
func (a *Ablation) title() string {
	ended := ""
	if !a.Complete {
		ended = ", " + a.Ended()
	}
	return fmt.Sprintf("%s → %s, %s and %s, %d servers: %d schedules from seed %d on%s",
		a.Spec, a.To, a.Spec.From, a.Spec.To, a.Spec.Servers, a.Schedules, a.FirstSeed, ended)
}

// Ended says how far an incomplete ablation got.
func (a *Ablation) Ended() string {
	noun := "switches"
	if a.Switches == 1 {
		noun = "switch"
	}
	return fmt.Sprintf("ended after %d of %d %s", len(a.Rows), a.Switches, noun)
}

// shortValue cuts a value to a readable length.
func shortValue(value string) string { return cutTo(value, 32) }
