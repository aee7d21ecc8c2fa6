package reports

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
)

var (
	ablationPage = newPage("ablation/", "ablation")
	ablationHead = newHead(nil, "matrix/matrix.css", "ablation/ablation.css")
)

// ablationDocument is the input of the template.
type ablationDocument struct {
	*Ablation
	head
	Conclusion string
	Effects    []ablationEffects
	Grids      []ablationGrid
	JSON       string
}

// ablationGrid is one of the two tables of counts.
type ablationGrid struct {
	ID, Title string
	// Base names the unchanged policy, whose counts are BaseCounts.
	Base       string
	BaseCounts []uint64
	Rows       []ablationGridRow
}

// ablationGridRow holds the counts with one change. Value is the whole value of the switch, which
// Change may show shortened.
type ablationGridRow struct {
	Change, Value string
	Cells         []ablationGridCell
}

// ablationGridCell is a count. Class marks the counts that the table of effects names.
type ablationGridCell struct {
	Count uint64
	Same  bool
	Class invariant.Outcome
}

// WriteAblationHTML writes the ablation as one self-contained page without scripts, like
// [WriteHTML].
func WriteAblationHTML(w io.Writer, a *Ablation) error {
	return writePage(w, ablationPage, ablationDocument{
		Ablation: a, head: ablationHead, Conclusion: a.conclusion(), Effects: a.effects(), Grids: a.grids(), JSON: AblationJSON,
	})
}

func (a *Ablation) grids() []ablationGrid {
	with := ablationGrid{ID: "with", Title: fmt.Sprintf("%s with one switch as in %s", a.Spec, a.To), Base: a.Spec.String(),
		BaseCounts: a.FromCounts}
	without := ablationGrid{ID: "without", Title: fmt.Sprintf("%s with one switch as in %s", a.To, a.Spec), Base: a.To, BaseCounts: a.ToCounts}
	for _, r := range a.Rows {
		with.add(r.Switch, r.ToValue, r.With, removes, a.rises)
		without.add(r.Switch, r.FromValue, r.Without, func(uint64, uint64) bool { return false }, needed)
	}
	return []ablationGrid{with, without}
}

// add adds the counts with one change. better and worse say which counts are named.
func (g *ablationGrid) add(name, value string, counts []uint64, better, worse func(before, after uint64) bool) {
	row := ablationGridRow{Change: name + "=" + shortValue(value), Value: value}
	for i, n := range counts {
		c := ablationGridCell{n, n == g.BaseCounts[i], invariant.OutcomeInconclusive}
		switch {
		case better(g.BaseCounts[i], n):
			c.Class = invariant.OutcomePass
		case worse(g.BaseCounts[i], n):
			c.Class = invariant.OutcomeFail
		}
		row.Cells = append(row.Cells, c)
	}
	g.Rows = append(g.Rows, row)
}

// ablationFigures explains the tables.
const ablationFigures = "The same schedules ran under each policy. Each figure is the number of schedules that violate the\n" +
	"invariant. A dot means that the change does not affect this number."

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

func (a *Ablation) tables() (tables []ablationTable) {
	head := []string{"change"}
	for _, c := range a.Columns {
		name := c.String()
		if c.Grade == invariant.GradeExtended {
			name += " (extended)"
		}
		head = append(head, name)
	}
	for _, g := range a.grids() {
		base := []string{g.Base + " as it is"}
		for _, n := range g.BaseCounts {
			base = append(base, fmt.Sprint(n))
		}
		table := ablationTable{g.Title, [][]string{head, base}}
		for _, r := range g.Rows {
			row := []string{r.Change}
			for _, c := range r.Cells {
				row = append(row, c.String())
			}
			table.rows = append(table.rows, row)
		}
		tables = append(tables, table)
	}
	return tables
}

// String is the count, or a dot for a count that the change leaves as it is, so that other counts
// stand out.
func (c ablationGridCell) String() string {
	if c.Same {
		return "·"
	}
	return fmt.Sprint(c.Count)
}

// shortValue cuts a value to a readable length.
func shortValue(value string) string {
	const longest = 32
	if runes := []rune(value); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return value
}

// WriteAblationText writes the tables for a terminal.
func WriteAblationText(w io.Writer, a *Ablation, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts}
	fmt.Fprintf(t, "%s.\n%s\n", plain(a.title()), ablationFigures)
	for _, table := range a.tables() {
		fmt.Fprintf(t, "\n%s\n", plain(table.title))
		if err := t.columns(table.rows); err != nil {
			return err
		}
	}
	for i, f := range a.Findings() {
		if i == 0 {
			t.WriteString("\n")
		}
		fmt.Fprintln(t, plain(f))
	}
	return t.end(w, AblationHTML, AblationJSON)
}

// columns writes rows of cells, in columns.
func (t *terminal) columns(rows [][]string) error {
	table := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, plainCells(row, "\t"))
	}
	return table.Flush()
}

// plainCells joins cells that are one line each.
func plainCells(row []string, between string) string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = plain(cell)
	}
	return strings.Join(cells, between)
}

// WriteAblationMarkdown writes the tables for a page.
func WriteAblationMarkdown(w io.Writer, a *Ablation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ablation: %s to %s\n\n%s.\n\n%s\n", inTable(a.Spec.String()), inTable(a.To), inTable(a.title()), ablationFigures)
	for _, table := range a.tables() {
		fmt.Fprintf(&b, "\n## %s\n\n", inTable(table.title))
		for n, row := range table.rows {
			b.WriteString(markdownRow(row))
			if n == 0 {
				fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---:|", len(a.Columns)))
			}
		}
	}
	for i, f := range a.Findings() {
		if i == 0 {
			b.WriteString("\n## What this says\n\n")
		}
		b.WriteString(filled("- ", inTable(f)))
	}
	if a.Inputs != "" {
		fmt.Fprintf(&b, "\nInputs: %s.\n", inTable(a.Inputs))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownRow is a row of a table in Markdown.
func markdownRow(row []string) string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = inTable(cell)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}
