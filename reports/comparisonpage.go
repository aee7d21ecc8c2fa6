package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// chanceNote says how reliable the figures of two runs are. Every rendering has it.
const chanceNote = "Shares and latencies are of two runs on a machine that does other things as well: they are shown, and decide nothing."

// page has what changed. It has all of every run if all is true; otherwise it only names the runs
// of a suite in which nothing changed, and the first of many resources.
func (c Comparison) page(all bool) page {
	p := page{
		Title: "What changed from A to B", Outcome: c.Outcome(), Word: map[bool]string{false: "NOTHING NEW", true: "NEW"}[c.Worse()],
		Sentence: c.Verdict(),
		Lead: "Two violations are the same if their signatures are the same; counts and times do not matter. " +
			"New: only B has it. Still: both have it. Fixed: only A has it, and B was tested for it.",
		Sections: []section{{List: []item{c.A.item("A"), c.B.item("B")}}},
	}
	if len(c.Scenarios) > 0 {
		scenarios := &table{Head: heads("change", "scenario", "A", "B")}
		for _, s := range c.Scenarios {
			scenarios.Rows = append(scenarios.Rows, []tableCell{s.State.cell(), {Text: s.Name}, {Text: s.A.words()}, {Text: s.B.words()}})
		}
		p.Sections = append(p.Sections, section{Heading: "Scenarios", Table: scenarios})
	}
	if len(c.Kinds) > 0 {
		p.Sections = append(p.Sections, kindSection("Kinds of violations", "A and B are schedules that show the violation.", c.Kinds))
	}
	full, unchanged := c.Runs, []Diff(nil)
	if !all {
		full, unchanged = c.shown()
	}
	for _, d := range full {
		p.Sections = append(p.Sections, d.sections(all)...)
	}
	if len(unchanged) > 0 {
		folded := section{Folded: counted(len(unchanged), "run") + " in which nothing changed"}
		for _, d := range unchanged {
			folded.List = append(folded.List, item{Text: d.Scenario + ", " + d.Subject + ": " + d.Tally()})
		}
		p.Sections = append(p.Sections, folded)
	}
	if len(c.Notes) > 0 {
		p.Sections = append(p.Sections, section{Heading: "Not compared", List: items(c.Notes)})
	}
	return p
}

// item describes one side.
func (c Compared) item(name string) item {
	return item{Text: name + ": " + c.Path + " (" + c.Document + ")", Note: strings.Join(c.Facts, "; ")}
}

func (s DiffState) cell() tableCell { return tableCell{Text: string(s), Outcome: s.Outcome()} }

// words describes a result with the findings that explain it: "failed (findings 2, 7)".
func (p ProfileResult) words() string {
	if label := p.Attribution(); label != "" {
		return string(p.Result) + " (" + label + ")"
	}
	return string(p.Result)
}

// kindSection has kinds of violations, with a sentence for each new one.
func kindSection(heading, note string, kinds []KindDiff) section {
	s := section{Heading: heading, Note: note}
	if len(kinds) > 0 {
		s.Table = &table{Head: []column{{Name: "change"}, {Name: "A", Number: true}, {Name: "B", Number: true}, {Name: "violation"}, {Name: "known"}}}
	}
	for _, k := range kinds {
		s.Table.Rows = append(s.Table.Rows, []tableCell{
			k.State.cell(), {Text: grouped(k.A)}, {Text: grouped(k.B)}, {Text: k.Kind()}, {Text: cmp.Or(k.Label, "not asked")},
		})
		if k.State == DiffNew {
			s.List = append(s.List, item{Text: "new: " + k.Sentence})
		}
	}
	return s
}

// sections are a run: its kinds of violations, verdicts that differ, and what is shown for both.
func (d Diff) sections(all bool) []section {
	parts := []section{kindSection(d.Scenario+", "+d.Subject, "A: "+side(d.A)+". B: "+side(d.B)+".", d.Kinds)}
	if len(d.Verdicts) > 0 {
		verdicts := &table{Head: heads("invariant", "A", "B")}
		for _, v := range d.Verdicts {
			verdicts.add(v.Name, string(cmp.Or(v.A, "none")), string(cmp.Or(v.B, "none")))
		}
		parts = append(parts, section{Table: verdicts})
	}
	if len(d.Kinds)+len(d.Verdicts) == 0 {
		parts = append(parts, section{Note: "No violation in either, and no verdict differs."})
	}
	if x := d.Discovery; x != nil {
		s := section{Folded: fmt.Sprintf("Merged discovery: %d only in A, %d only in B", len(x.OnlyA), len(x.OnlyB))}
		for _, only := range []struct {
			side  string
			names []string
		}{{"A", x.OnlyA}, {"B", x.OnlyB}} {
			if len(only.names) > 0 {
				s.List = append(s.List, item{Text: "only in " + only.side + ": " + shortened(only.names, all)})
			}
		}
		parts = append(parts, s)
	}
	if len(d.Rates) > 0 {
		rates := &table{Head: heads("requests", "side")}
		for _, name := range []string{"number", "passed on", "ok", "404 object", "404 resource", "503", "other"} {
			rates.Head = append(rates.Head, column{Name: name, Number: true})
		}
		for _, r := range d.Rates {
			rates.add(append([]string{r.Class, "A"}, r.A.words()...)...)
			rates.add(append([]string{r.Class, "B"}, r.B.words()...)...)
		}
		parts = append(parts, section{Folded: "Requests", Note: chanceNote, Table: rates})
	}
	if len(d.Latencies) > 0 {
		latencies := &table{Head: []column{{Name: "requests"}, {Name: "A", Number: true}, {Name: "B", Number: true}}}
		for _, l := range d.Latencies {
			latencies.add(l.Class+", "+l.Way, l.A.String(), l.B.String())
		}
		parts = append(parts, section{Folded: "Latency, p50 / p99", Table: latencies})
	}
	return parts
}

// mostListed is how many resources a text for people lists.
const mostListed = 20

func shortened(names []string, all bool) string {
	if more := len(names) - mostListed; more > 0 && !all {
		return strings.Join(names[:mostListed], ", ") + fmt.Sprintf(", and %d more", more)
	}
	return strings.Join(names, ", ")
}

// WriteComparisonText writes a comparison for a terminal.
func WriteComparisonText(w io.Writer, c Comparison) error {
	return c.page(false).text(w, SummaryOptions{})
}

// WriteComparisonMarkdown writes a comparison for a comment on a pull request. It shows what
// changed and folds the rest away.
func WriteComparisonMarkdown(w io.Writer, c Comparison) error {
	_, err := io.WriteString(w, c.page(false).markdown())
	return err
}

// WriteComparisonHTML writes a comparison as one self-contained page without scripts, like
// [WriteHTML]. version is that of the program that writes the page.
func WriteComparisonHTML(w io.Writer, c Comparison, version string) error {
	p := c.page(true)
	p.SkewproofVersion = version
	return p.html(w)
}
