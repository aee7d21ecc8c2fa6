package reports

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// SmallestKind identifies the document, with [APIVersion].
const SmallestKind = "SmallestChange"

// Smallest is the smallest set of changes that was found to leave a policy without a violation of a
// core invariant, over schedules and scenarios. No change of the set can be left out.
type Smallest struct {
	// APIVersion is always [APIVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is always [SmallestKind].
	Kind string `json:"kind"`
	// SkewproofVersion is the version of the program that searched. Inputs is a hash of what the
	// result depends on: the switches of both policies, the schedules and the simulator.
	SkewproofVersion string `json:"skewproofVersion"`
	Inputs           string `json:"inputs"`
	// Spec says what was changed, and To is the policy that the changes are taken from.
	Spec SearchSpec `json:"spec"`
	To   string     `json:"to"`
	// Switches is the number of switches in which the policies differ.
	Switches int `json:"switches"`
	// Schedules is how many random schedules nothing is violated in, from the seed FirstSeed on.
	Schedules uint64 `json:"schedules"`
	FirstSeed uint64 `json:"firstSeed"`
	// Scenarios is how many scenarios nothing is violated in. NotRun are those that the simulator
	// does not run.
	Scenarios int      `json:"scenarios"`
	NotRun    []string `json:"notRun,omitempty"`
	// Left are violations that stay with all changes at once, each with its place. The set is not
	// held to these.
	Left []string `json:"left,omitempty"`
	// Rows are the changes of the set, in the order of their declaration.
	Rows []SmallestRow `json:"rows"`
	// Costs are those of all changes of the set together.
	Costs Costs `json:"costs"`
}

// SmallestRow is a change of the set.
type SmallestRow struct {
	// Change is the change: "Knowledge.FailClosed=true".
	Change string `json:"change"`
	// Schedules is how many schedules violate a core invariant if only this change is left out of
	// the set. Violated counts them by invariant.
	Schedules uint64          `json:"schedules"`
	Violated  []SmallestCount `json:"violated,omitempty"`
	// Scenarios are scenarios that fail then, of those that were tried.
	Scenarios []string `json:"scenarios,omitempty"`
	// Costs are those of the policy with this change alone.
	Costs Costs `json:"costs"`
}

// SmallestCount is how many schedules violate an invariant.
type SmallestCount struct {
	// Invariant is the name of the invariant.
	Invariant string `json:"invariant"`
	// Schedules is the number of schedules that violate it.
	Schedules uint64 `json:"schedules"`
}

// Costs are what changes cost, against the policy without them.
type Costs struct {
	// FetchesPerHour is how many discovery documents all servers fetch of one another in an hour in
	// which nothing happens, and Fetches how many without the changes.
	FetchesPerHour float64 `json:"fetchesPerHour"`
	Fetches        float64 `json:"fetches"`
	// Attempts is the ratio of attempts at peers for each request that needs one. Latency is the
	// ratio of the mean time until a peer's answer has come. Both are over schedules full of faults.
	Attempts float64 `json:"attempts"`
	Latency  float64 `json:"latency"`
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

// title says what was looked for.
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
	rows := [][]string{{"change", "schedules violated without it", "what is violated without it", "fetches per hour", "attempts per request", "latency"}}
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

// WriteSmallest writes the set into dir as text, Markdown and JSON, like [WriteAblation].
func WriteSmallest(dir string, s *Smallest) error {
	return save(dir, s, []rendering[*Smallest]{
		{"smallest.txt", WriteSmallestText}, {"smallest.md", WriteSmallestMarkdown}, {"smallest.json", writeIndented[*Smallest]},
	})
}

// WriteSmallestText writes the set for a terminal.
func WriteSmallestText(w io.Writer, s *Smallest) error {
	var b strings.Builder
	b.WriteString(filled("", s.title()) + "\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range s.table() {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(s.notes(), "\n"))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteSmallestMarkdown writes the set as part of a page.
func WriteSmallestMarkdown(w io.Writer, s *Smallest) error {
	var b strings.Builder
	b.WriteString(filled("", s.title()) + "\n")
	for n, row := range s.table() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if n == 0 {
			b.WriteString("|---|---:|---|---:|---:|---:|\n")
		}
	}
	for _, note := range s.notes() {
		b.WriteString("\n" + filled("", note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
