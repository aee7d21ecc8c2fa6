package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// page has a row for each change of the set, and one for all of them.
func (s *Smallest) page() page {
	changes := &table{Head: []column{
		{Name: "change"}, {Name: "schedules violated without it", Number: true}, {Name: "what is violated without it"},
		{Name: "fetches per hour", Number: true}, {Name: "attempts per request", Number: true}, {Name: "latency", Number: true},
	}}
	for _, r := range s.Rows {
		changes.add(append([]string{r.Change, fmt.Sprint(r.Schedules), r.needed()}, r.Costs.words()...)...)
	}
	changes.add(append([]string{"all of them", "", ""}, s.Costs.words()...)...)
	p := page{
		Title: fmt.Sprintf("Smallest set of changes: %s to %s", s.Spec, s.To), Lead: s.title(), Reproduce: s.Command(),
		SkewproofVersion: s.SkewproofVersion, Document: SmallestJSON, TypeMeta: s.TypeMeta,
		Sections: []section{{Heading: "Changes", Table: changes, Note: "A change costs what it costs alone, compared with the first policy."}},
	}
	if len(s.Left) > 0 {
		p.Sections = append(p.Sections, section{Note: fmt.Sprintf("%s stay even with all changes at once, and the search leaves them out: %s",
			counted(len(s.Left), "violation"), s.leftByInvariant())})
	}
	if len(s.NotRun) > 0 {
		p.Sections = append(p.Sections, section{Note: "The simulator does not run the scenarios " + strings.Join(s.NotRun, ", ") + "."})
	}
	p.Sections = append(p.Sections, section{Note: "Inputs: " + s.Inputs + "."})
	return p
}

// words are the cells of the costs.
func (c Costs) words() []string {
	fetches := "none, as before"
	switch {
	case c.FetchesPerHour != c.Fetches && c.Fetches == 0:
		fetches = fmt.Sprintf("%.0f, rather than none", c.FetchesPerHour)
	case c.Fetches > 0:
		fetches = fmt.Sprintf("× %.2f", c.FetchesPerHour/c.Fetches)
	}
	return []string{fetches, fmt.Sprintf("× %.2f", c.Attempts), fmt.Sprintf("× %.2f", c.Latency)}
}

// needed says what a change is needed for.
func (r SmallestRow) needed() string {
	var all []string
	for _, v := range r.Violated {
		all = append(all, fmt.Sprintf("%s (%d)", v.Invariant, v.Schedules))
	}
	if len(r.Scenarios) > 0 {
		all = append(all, "in the scenarios "+strings.Join(r.Scenarios, ", "))
	}
	return strings.Join(all, ", ")
}

// title says what was found.
func (s *Smallest) title() string {
	except := ""
	if len(s.Left) > 0 {
		except = ", except for the violations that stay with all changes"
	}
	return fmt.Sprintf("This is the smallest set of changes that the search found: %d of the %d switches in which %s differs from %s. "+
		"With this set, %[3]s (%[5]s and %[6]s, %[7]d servers) violates no core invariant in %[8]d schedules, from seed %[9]d on, and %[10]d scenarios%[11]s.",
		len(s.Rows), s.Switches, s.Spec, s.To, s.Spec.From, s.Spec.To, s.Spec.Servers, s.Schedules, s.FirstSeed, s.Scenarios, except)
}

// leftByInvariant counts what is left by the invariant that is violated, the most frequent first,
// with the first example of each.
func (s *Smallest) leftByInvariant() string {
	counts, first := map[string]int{}, map[string]string{}
	for _, left := range s.Left {
		where, name, _ := strings.Cut(left, ": ")
		if counts[name]++; counts[name] == 1 {
			first[name] = where
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%s (%d, first in %s)", name, counts[name], first[name]))
	}
	return strings.Join(all, ", ") + "."
}
