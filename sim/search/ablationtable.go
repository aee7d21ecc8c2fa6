package search

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
)

// telling is the least part of a policy's violations that a change must remove to be named for it.
const telling = 0.05

// rises tells whether a change that violates an invariant in so many more schedules is named for it: by a fifth, and in one schedule of a hundred.
func (a *Ablation) rises(before, after uint64) bool {
	return after > before && 5*(after-before) >= before && 100*(after-before) >= a.Schedules
}

// Findings says in sentences which single change removes which violations, which adds to them, and which is needed; that no single one removes them only
// if all were tried.
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
					inv, r.Switch, shown(r.ToValue), a.Spec, percent(part), r.With[i], a.FromCounts[i]))
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
					inv, r.Switch, shown(r.ToValue), a.Spec, r.With[i], a.Schedules, a.FromCounts[i]))
			}
		}
	}
	for i, inv := range a.Columns {
		for _, r := range a.Rows {
			if r.Without[i] > a.ToCounts[i] {
				all = append(all, fmt.Sprintf("%s: %s with %s=%s, rather than %s, violates it in %d of %d schedules, as it is in %d.",
					inv, a.To, r.Switch, shown(r.FromValue), shown(r.ToValue), r.Without[i], a.Schedules, a.ToCounts[i]))
			}
		}
	}
	return all
}

// percent does not round up to all of them.
func percent(part float64) string {
	if part >= 1 {
		return "all"
	}
	if rounded := fmt.Sprintf("%.0f %%", 100*part); rounded != "100 %" {
		return rounded
	}
	return "more than 99 %"
}

// title says what was compared.
func (a *Ablation) title() string {
	ended := ""
	if !a.Complete {
		ended = ", " + a.Ended()
	}
	return fmt.Sprintf("%s → %s, %s and %s, %d servers: %d schedules from seed %d on under each policy%s; "+
		"the figures are schedules that violate the invariant",
		a.Spec, a.To, a.Spec.From, a.Spec.To, a.Spec.Servers, a.Schedules, a.FirstSeed, ended)
}

// Ended says of an ablation that is not complete how far it came.
func (a *Ablation) Ended() string {
	noun := "switches"
	if a.Switches == 1 {
		noun = "switch"
	}
	return fmt.Sprintf("ended after %d of %d %s", len(a.Rows), a.Switches, noun)
}

// half is one of the two tables.
type half struct {
	title, base string
	baseCounts  []uint64
	rows        [][]string
}

func (a *Ablation) halves() []half {
	with := half{title: fmt.Sprintf("%s with one switch as in %s", a.Spec, a.To), base: a.Spec.String() + " as it is", baseCounts: a.FromCounts}
	without := half{title: fmt.Sprintf("%s with one switch as in %s", a.To, a.Spec), base: a.To + " as it is", baseCounts: a.ToCounts}
	for _, r := range a.Rows {
		with.rows = append(with.rows, cells(r.Switch+"="+shown(r.ToValue), r.With, a.FromCounts))
		without.rows = append(without.rows, cells(r.Switch+"="+shown(r.FromValue), r.Without, a.ToCounts))
	}
	return []half{with, without}
}

// longest is up to how many characters a value is shown.
const longest = 32

func shown(value string) string {
	if runes := []rune(value); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return value
}

// cells are a row. What is as without the change is a dot, so that the eye finds the rest.
func cells(name string, counts, base []uint64) []string {
	row := []string{name}
	for i, n := range counts {
		if n == base[i] {
			row = append(row, "·")
		} else {
			row = append(row, fmt.Sprint(n))
		}
	}
	return row
}

func (a *Ablation) header(first string) []string {
	row := []string{first}
	for _, i := range a.Columns {
		name := i.String()
		if i.Grade == invariant.GradeExtended {
			name += " (extended)"
		}
		row = append(row, name)
	}
	return row
}

func baseRow(h half) []string {
	row := []string{h.base}
	for _, n := range h.baseCounts {
		row = append(row, fmt.Sprint(n))
	}
	return row
}

// WriteText writes the tables for a terminal.
func (a *Ablation) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", a.title())
	for _, h := range a.halves() {
		fmt.Fprintf(w, "\n%s\n", h.title)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{a.header("change"), baseRow(h)}, h.rows...) {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if said := a.Findings(); len(said) > 0 {
		if _, err := fmt.Fprintf(w, "\n%s\n", strings.Join(said, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// WriteMarkdown writes the tables for a page.
func (a *Ablation) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ablation: %s to %s\n\n%s.\nA dot is a figure that the change leaves as it is.\n", a.Spec, a.To, a.title())
	for _, h := range a.halves() {
		fmt.Fprintf(&b, "\n## %s\n\n| %s |\n|---|%s\n", h.title, strings.Join(a.header("change"), " | "), strings.Repeat("---:|", len(a.Columns)))
		for _, row := range append([][]string{baseRow(h)}, h.rows...) {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	for i, f := range a.Findings() {
		if i == 0 {
			b.WriteString("\n## What this says\n\n")
		}
		fmt.Fprintf(&b, "- %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
