package reports

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
)

// AblationKind identifies the document, with [APIVersion].
const AblationKind = "Ablation"

// Ablation says which single switch causes which difference between two policies. The same
// schedules run under the older policy with one switch set as in the newer policy. They also run
// under the newer policy with one switch set as in the older policy.
type Ablation struct {
	// APIVersion is always [APIVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is always [AblationKind].
	Kind string `json:"kind"`
	// SkewproofVersion is the version of the program that searched.
	SkewproofVersion string `json:"skewproofVersion"`
	// Inputs is a hash of what the result depends on: the switches of both policies, the schedules
	// and the simulator.
	Inputs string `json:"inputs"`
	// Spec says what was searched. Its policy is that of From.
	Spec SearchSpec `json:"spec"`
	// To is the name of the other policy.
	To string `json:"to"`
	// Schedules is how many schedules ran under each policy. FirstSeed is the seed of the first
	// one.
	Schedules uint64 `json:"schedules"`
	FirstSeed uint64 `json:"firstSeed"`
	// Switches is the number of switches in which the policies differ. Complete is false if the
	// ablation was ended early. Then a row that was cut short, and the counts of the unchanged
	// policies, are left out.
	Switches int  `json:"switches"`
	Complete bool `json:"complete"`
	// Columns are the invariants that were violated under any policy, by the kind of request, in
	// catalogue order. All counts have the order of the columns.
	Columns []AblationColumn `json:"columns"`
	// FromCounts and ToCounts are how many schedules violated each invariant under the unchanged
	// policies.
	FromCounts []uint64 `json:"fromCounts"`
	ToCounts   []uint64 `json:"toCounts"`
	// Rows are the switches in which the policies differ, in the order of their declaration.
	Rows []AblationRow `json:"rows"`
}

// AblationColumn is an invariant that was violated in requests of one kind. Each kind has its own
// column, so that a switch about subresources does not hide one about forged hop headers.
type AblationColumn struct {
	// Invariant is the name of the invariant. Grade says which source demands it.
	Invariant string          `json:"invariant"`
	Grade     invariant.Grade `json:"grade"`
	// Asked is the kind of the requests.
	Asked RequestKind `json:"asked,omitempty"`
}

// String is the column's head.
func (c AblationColumn) String() string {
	if c.Asked == PlainRequest {
		return c.Invariant
	}
	return c.Invariant + ", " + string(c.Asked)
}

// AblationRow holds the effects of one switch.
type AblationRow struct {
	// Switch is the name of the switch. FromValue and ToValue are its values in the two policies.
	Switch    string `json:"switch"`
	FromValue string `json:"fromValue"`
	ToValue   string `json:"toValue"`
	// With are the counts of the policy From with only this switch changed to its value in To.
	// Without are the counts of To with only this switch changed to its value in From.
	With    []uint64 `json:"with"`
	Without []uint64 `json:"without"`
}

// WriteAblation writes the tables into dir as text, Markdown and JSON. It makes dir if dir does not
// exist. It writes all three files or, on an error, none, like [WriteAll].
func WriteAblation(dir string, a *Ablation) error {
	return save(dir, a, []rendering[*Ablation]{
		{"ablation.txt", WriteAblationText}, {"ablation.md", WriteAblationMarkdown}, {"ablation.json", writeIndented[*Ablation]},
	})
}

// telling is the smallest share of a policy's violations that a change must remove to be named.
const telling = 0.05

// rises reports whether a change adds enough violations to be named: at least a fifth more, and in
// at least 1 of 100 schedules.
func (a *Ablation) rises(before, after uint64) bool {
	return after > before && 5*(after-before) >= before && 100*(after-before) >= a.Schedules
}

// Findings says in sentences which single change removes violations, adds violations or is needed.
// It says that no single change removes them only if all changes were tried.
func (a *Ablation) Findings() []string {
	var all []string
	for i, inv := range a.Columns {
		if a.FromCounts[i] == 0 {
			continue
		}
		alone := 0
		for _, r := range a.Rows {
			if part := share(a.FromCounts[i], r.With[i]); part >= telling {
				alone++
				all = append(all, fmt.Sprintf("%s: %s=%s alone, in %s, removes %s of the violations (%d of %d schedules are left).",
					inv, r.Switch, shortValue(r.ToValue), a.Spec, percent(part), r.With[i], a.FromCounts[i]))
			}
		}
		if alone == 0 && a.Complete {
			all = append(all, fmt.Sprintf("%s: no single change of %s removes as much as %s of the violations in %d schedules.",
				inv, a.Spec, percent(telling), a.FromCounts[i]))
		}
	}
	for i, inv := range a.Columns {
		for _, r := range a.Rows {
			if a.rises(a.FromCounts[i], r.With[i]) {
				all = append(all, fmt.Sprintf("%s: %s=%s alone, in %s, adds to the violations (%d of %d schedules, rather than %d).",
					inv, r.Switch, shortValue(r.ToValue), a.Spec, r.With[i], a.Schedules, a.FromCounts[i]))
			}
		}
	}
	for i, inv := range a.Columns {
		for _, r := range a.Rows {
			if r.Without[i] > a.ToCounts[i] {
				all = append(all, fmt.Sprintf("%s: %s with %s=%s, rather than %s, violates it in %d of %d schedules, instead of %d.",
					inv, a.To, r.Switch, shortValue(r.FromValue), shortValue(r.ToValue), r.Without[i], a.Schedules, a.ToCounts[i]))
			}
		}
	}
	return all
}

// percent writes a share in percent. It rounds to "all" only if the share is 1.
func percent(part float64) string {
	if part >= 1 {
		return "all"
	}
	if rounded := fmt.Sprintf("%.0f %%", 100*part); rounded != "100 %" {
		return rounded
	}
	return "more than 99 %"
}

// share is the share of a policy's violations that a change removes. It is below 0 if the change
// adds violations.
func share(before, after uint64) float64 {
	if before == 0 {
		return 0
	}
	return 1 - float64(after)/float64(before)
}

// ablationFigures explains the tables.
const ablationFigures = "The same schedules ran under each policy. Each figure is the number of schedules that violate the\ninvariant. A dot means that the change does not affect this number."

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

// ablationTable is one of the two tables. Its first two rows are the header and the unchanged
// policy.
type ablationTable struct {
	title string
	rows  [][]string
}

func (a *Ablation) tables() []ablationTable {
	head := []string{"change"}
	for _, c := range a.Columns {
		name := c.String()
		if c.Grade == invariant.GradeExtended {
			name += " (extended)"
		}
		head = append(head, name)
	}
	with := ablationTable{fmt.Sprintf("%s with one switch as in %s", a.Spec, a.To), [][]string{head, cells(a.Spec.String()+" as it is", a.FromCounts, nil)}}
	without := ablationTable{fmt.Sprintf("%s with one switch as in %s", a.To, a.Spec), [][]string{head, cells(a.To+" as it is", a.ToCounts, nil)}}
	for _, r := range a.Rows {
		with.rows = append(with.rows, cells(r.Switch+"="+shortValue(r.ToValue), r.With, a.FromCounts))
		without.rows = append(without.rows, cells(r.Switch+"="+shortValue(r.FromValue), r.Without, a.ToCounts))
	}
	return []ablationTable{with, without}
}

// shortValue cuts a value to a readable length.
func shortValue(value string) string {
	const longest = 32
	if runes := []rune(value); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return value
}

// cells makes a row. It shows a count that equals base as a dot, so that other counts stand out.
// base may be nil.
func cells(name string, counts, base []uint64) []string {
	row := []string{name}
	for i, n := range counts {
		if base != nil && n == base[i] {
			row = append(row, "·")
		} else {
			row = append(row, fmt.Sprint(n))
		}
	}
	return row
}

// WriteAblationText writes the tables for a terminal.
func WriteAblationText(w io.Writer, a *Ablation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n%s\n", a.title(), ablationFigures)
	for _, table := range a.tables() {
		fmt.Fprintf(&b, "\n%s\n", table.title)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range table.rows {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if said := a.Findings(); len(said) > 0 {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(said, "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteAblationMarkdown writes the tables for a page.
func WriteAblationMarkdown(w io.Writer, a *Ablation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ablation: %s to %s\n\n%s.\n\n%s\n", a.Spec, a.To, a.title(), ablationFigures)
	for _, table := range a.tables() {
		fmt.Fprintf(&b, "\n## %s\n\n", table.title)
		for n, row := range table.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if n == 0 {
				fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---:|", len(a.Columns)))
			}
		}
	}
	for i, f := range a.Findings() {
		if i == 0 {
			b.WriteString("\n## What this says\n\n")
		}
		b.WriteString(filled("- ", f))
	}
	if a.Inputs != "" {
		fmt.Fprintf(&b, "\nInputs: %s.\n", a.Inputs)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
