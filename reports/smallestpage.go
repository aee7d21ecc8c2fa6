package reports

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

var (
	smallestPage = newPage("ablation/", "smallest")
	smallestHead = newHead(nil, "ablation/ablation.css")
)

// smallestDocument is the input of the template.
type smallestDocument struct {
	*Smallest
	head
	// Told is what was looked for. Notes are what stands below the table.
	Told  string
	Table [][]string
	Notes []string
	JSON  string
}

// Number reports whether a column of the table holds numbers.
func (smallestDocument) Number(column int) bool { return column != 0 && column != 2 }

// WriteSmallestHTML writes the set as one self-contained page without scripts, like [WriteHTML].
func WriteSmallestHTML(w io.Writer, s *Smallest) error {
	return writePage(w, smallestPage, smallestDocument{s, smallestHead, s.title(), s.table(), s.notes(), SmallestJSON})
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

func (s *Smallest) table() [][]string {
	rows := [][]string{{"change", "schedules violated without it", "what is violated without it", "fetches per hour", "attempts per request",
		"latency"}}
	for _, r := range s.Rows {
		rows = append(rows, append([]string{r.Change, fmt.Sprint(r.Schedules), r.needed()}, r.Costs.words()...))
	}
	return append(rows, append([]string{"all of them", "", ""}, s.Costs.words()...))
}

// notes are what stands below the table.
func (s *Smallest) notes() []string {
	var notes []string
	if len(s.Left) > 0 {
		notes = append(notes, fmt.Sprintf("%s stay even with all changes at once, and the search leaves them out: %s",
			counted(len(s.Left), "violation"), s.leftByInvariant()))
	}
	if len(s.NotRun) > 0 {
		notes = append(notes, "The simulator does not run the scenarios "+strings.Join(s.NotRun, ", ")+".")
	}
	return append(notes, "Inputs: "+s.Inputs+".")
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

// WriteSmallestText writes the set for a terminal.
func WriteSmallestText(w io.Writer, s *Smallest, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts}
	t.WriteString(filled("", plain(s.title())) + "\n")
	if err := t.columns(s.table()); err != nil {
		return err
	}
	t.WriteString("\n")
	for _, note := range s.notes() {
		fmt.Fprintln(t, plain(note))
	}
	return t.end(w, SmallestHTML, SmallestJSON)
}

// WriteSmallestMarkdown writes the set as part of a page.
func WriteSmallestMarkdown(w io.Writer, s *Smallest) error {
	var b strings.Builder
	b.WriteString(filled("", inTable(s.title())) + "\n")
	for n, row := range s.table() {
		b.WriteString(markdownRow(row))
		if n == 0 {
			b.WriteString("|---|---:|---|---:|---:|---:|\n")
		}
	}
	for _, note := range s.notes() {
		b.WriteString("\n" + filled("", inTable(note)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
