package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// chanceNote says how reliable the figures of two runs are. Every rendering has it.
const chanceNote = "Shares and latencies are of two runs on a machine that does other things as well: they are shown, and decide nothing."

// WriteComparisonText writes a comparison for a terminal.
func WriteComparisonText(w io.Writer, c Comparison) error {
	t := &terminal{}
	t.headed(c.Outcome(), map[bool]string{false: "NOTHING NEW", true: "NEW"}[c.Worse()], c.Verdict())
	for _, x := range []struct {
		name string
		Compared
	}{{"A", c.A}, {"B", c.B}} {
		fmt.Fprintf(t, "%s: %s (%s)\n", x.name, plain(x.Path), plain(x.Document))
		for _, fact := range x.Facts {
			fmt.Fprintf(t, "   %s\n", plain(fact))
		}
	}
	t.WriteString("\n")
	for _, s := range c.Scenarios {
		fmt.Fprintf(t, "%-10s %s: %s → %s\n", s.State, plain(s.Name), s.A.words(), s.B.words())
	}
	if len(c.Scenarios) > 0 {
		t.WriteString("\n")
	}
	t.kinds(c.Kinds)
	measured := false
	full, unchanged := c.shown()
	for _, d := range full {
		fmt.Fprintf(t, "%s, %s\n", plain(d.Scenario), plain(d.Subject))
		if c.A.Document != "run" {
			fmt.Fprintf(t, "  A: %s\n  B: %s\n", plain(side(d.A)), plain(side(d.B)))
		}
		t.run(d)
		measured = measured || len(d.Rates)+len(d.Latencies) > 0
	}
	for _, d := range unchanged {
		fmt.Fprintf(t, "%s, %s: nothing changed (%s)\n", plain(d.Scenario), plain(d.Subject), d.Tally())
	}
	if measured {
		fmt.Fprintln(t, chanceNote)
	}
	for _, note := range c.Notes {
		fmt.Fprintln(t, plain(note))
	}
	return t.end(w)
}

// words describes a result with the findings that explain it: "failed (findings 2, 7)".
func (p ProfileResult) words() string {
	if label := p.Attribution(); label != "" {
		return string(p.Result) + " (" + label + ")"
	}
	return string(p.Result)
}

func (t *terminal) kinds(kinds []KindDiff) {
	for _, k := range kinds {
		fmt.Fprintf(t, "  %-10s %s → %s  %s", k.State, grouped(k.A), grouped(k.B), plain(k.Kind()))
		if k.Label != "" {
			fmt.Fprintf(t, " [%s]", plain(k.Label))
		}
		t.WriteString("\n")
		if k.State == DiffNew {
			fmt.Fprintf(t, "             %s\n", plain(k.Sentence))
		}
	}
}

func (t *terminal) run(d Diff) {
	t.kinds(d.Kinds)
	for _, v := range d.Verdicts {
		fmt.Fprintf(t, "  %s: %s → %s\n", plain(v.Name), orNone(v.A), orNone(v.B))
	}
	if len(d.Kinds)+len(d.Verdicts) == 0 {
		t.WriteString("  no violation in either, and no verdict differs\n")
	}
	for _, r := range d.Rates {
		fmt.Fprintf(t, "  %s requests\n    A: %s\n    B: %s\n", plain(r.Class), r.A, r.B)
	}
	if len(d.Latencies) > 0 {
		t.WriteString("  latency, p50 / p99\n")
	}
	for _, l := range d.Latencies {
		fmt.Fprintf(t, "    %-42s A: %-20s B: %s\n", plain(l.Class+", "+l.Way), l.A, l.B)
	}
	if x := d.Discovery; x != nil {
		for _, side := range []struct {
			name string
			only []string
		}{{"A", x.OnlyA}, {"B", x.OnlyB}} {
			if len(side.only) > 0 {
				fmt.Fprintf(t, "  merged discovery, only %s (%d): %s\n", side.name, len(side.only), plain(shortened(side.only)))
			}
		}
	}
	t.WriteString("\n")
}

// mostListed is how many resources a text for people lists.
const mostListed = 20

func shortened(names []string) string {
	if more := len(names) - mostListed; more > 0 {
		return strings.Join(names[:mostListed], ", ") + fmt.Sprintf(", and %d more", more)
	}
	return strings.Join(names, ", ")
}

// WriteComparisonMarkdown writes a comparison for a comment on a pull request. It shows what
// changed and folds the rest away.
func WriteComparisonMarkdown(w io.Writer, c Comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** %s\n\n", sign(c.Outcome()), cell(c.Verdict()))
	for _, x := range []struct {
		name string
		Compared
	}{{"A", c.A}, {"B", c.B}} {
		fmt.Fprintf(&b, "- %s: %s (%s)\n", x.name, cell(x.Path), cell(x.Document))
		for _, fact := range x.Facts {
			fmt.Fprintf(&b, "  - %s\n", cell(fact))
		}
	}
	b.WriteString("\n")
	if len(c.Scenarios) > 0 {
		b.WriteString("| | scenario | A | B |\n|---|---|---|---|\n")
		for _, s := range c.Scenarios {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.State, cell(s.Name), cell(s.A.words()), cell(s.B.words()))
		}
		b.WriteString("\n")
	}
	markdownKinds(&b, c.Kinds)
	full, unchanged := c.shown()
	for _, d := range full {
		d.markdown(&b, len(c.Runs) > 1 && !d.Worse())
	}
	if len(unchanged) > 0 {
		fmt.Fprintf(&b, "<details><summary>%s in which nothing changed</summary>\n\n", counted(len(unchanged), "run"))
		for _, d := range unchanged {
			fmt.Fprintf(&b, "- %s, %s: %s\n", cell(d.Scenario), cell(d.Subject), d.Tally())
		}
		b.WriteString("\n</details>\n\n")
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "- %s\n", cell(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var markdownEscapes = strings.NewReplacer(
	"|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "@", "@\u200b",
	"#", `\#`, "!", `\!`, `\`, `\\`, "~", `\~`,
)

// cell escapes a text for Markdown, so that it stays text and mentions no user. Servers write some
// of these texts.
func cell(s string) string { return markdownEscapes.Replace(plain(s)) }

func markdownKinds(b *strings.Builder, kinds []KindDiff) {
	if len(kinds) == 0 {
		return
	}
	b.WriteString("| | A | B | violation | |\n|---|---:|---:|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(b, "| %s | %d | %d | %s | %s |\n", k.State, k.A, k.B, cell(k.Kind()), cell(k.Label))
	}
	b.WriteString("\n")
}

// markdown writes a run. It folds the figures away, and everything if folded is set.
func (d Diff) markdown(b *strings.Builder, folded bool) {
	name := fmt.Sprintf("%s, %s", cell(d.Scenario), cell(d.Subject))
	if folded {
		fmt.Fprintf(b, "<details><summary>%s: %s</summary>\n\n", name, d.Tally())
	} else {
		fmt.Fprintf(b, "**%s**\n\n", name)
	}
	markdownKinds(b, d.Kinds)
	for _, v := range d.Verdicts {
		fmt.Fprintf(b, "- %s: %s → %s\n", cell(v.Name), orNone(v.A), orNone(v.B))
	}
	if len(d.Verdicts) > 0 {
		b.WriteString("\n")
	}
	if x := d.Discovery; x != nil {
		fmt.Fprintf(b, "Merged discovery: %d only in A, %d only in B.\n\n", len(x.OnlyA), len(x.OnlyB))
	}
	if len(d.Rates)+len(d.Latencies) > 0 {
		fmt.Fprintf(b, "<details><summary>requests and latency</summary>\n\n%s\n\n", chanceNote)
		b.WriteString("| requests | | number | passed on | ok | 404 object | 404 resource | 503 | other |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
		for _, r := range d.Rates {
			for _, s := range []struct {
				name string
				Shares
			}{{"A", r.A}, {"B", r.B}} {
				fmt.Fprintf(b, "| %s | %s | %d | %d | %s | %s | %s | %s | %s |\n", cell(r.Class), s.name, s.Requests, s.PassedOn,
					s.Share(s.OK), s.Share(s.NoObject), s.Share(s.NotFound), s.Share(s.Unavailable), s.Share(s.Other))
			}
		}
		b.WriteString("\n| latency, p50 / p99 | A | B |\n|---|---:|---:|\n")
		for _, l := range d.Latencies {
			fmt.Fprintf(b, "| %s, %s | %s | %s |\n", cell(l.Class), cell(l.Way), l.A, l.B)
		}
		b.WriteString("\n</details>\n")
	}
	if folded {
		b.WriteString("</details>\n")
	}
	b.WriteString("\n")
}

var (
	comparisonPage = newPage("comparison/", "comparison")
	comparisonHead = newHead(nil, "comparison/comparison.css")
)

// comparisonDocument is the input of the template.
type comparisonDocument struct {
	Comparison
	head
	Sides      []comparedSide
	ChanceNote string
	Version    string
}

type comparedSide struct {
	Name string
	Compared
}

// WriteComparisonHTML writes a comparison as one self-contained page without scripts, like
// [WriteHTML]. version is that of the program that writes the page.
func WriteComparisonHTML(w io.Writer, c Comparison, version string) error {
	return writePage(w, comparisonPage, comparisonDocument{c, comparisonHead, []comparedSide{{"A", c.A}, {"B", c.B}}, chanceNote, version})
}

func orNone(o invariant.Outcome) invariant.Outcome { return cmp.Or(o, "none") }
