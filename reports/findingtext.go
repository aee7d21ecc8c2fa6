package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/skewproof/skewproof/reports/findings"
)

// mostWords is how many scenarios or findings a text for a terminal names in one row.
const mostWords = 8

// WriteFindings lists findings for a terminal.
func WriteFindings(w io.Writer, all findings.Catalogue) error {
	var b strings.Builder
	columns := Columns(w)
	for _, f := range all {
		b.WriteString(Wrapped(fmt.Sprintf("%4d  ", f.Number), plain(f.Title), columns))
		about := string(f.Grade) + ", " + string(f.Disclosure)
		if f.Class != findings.ClassProxy {
			about += "; " + f.Class.String()
		}
		if f.Versions != "" {
			about += "; seen: " + f.Versions
		}
		b.WriteString(Wrapped("        ", plain(about), columns))
	}
	b.WriteString("\n" + Wrapped("", fmt.Sprintf("%d findings. 'skewproof finding NUMBER' describes one. Private first: it goes to "+
		"security@kubernetes.io before it is published.", len(all)), columns))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteFinding describes a finding for a terminal.
func WriteFinding(w io.Writer, f findings.Finding) error {
	var b strings.Builder
	columns := Columns(w)
	b.WriteString(Wrapped("", fmt.Sprintf("Finding %d: %s", f.Number, plain(f.Title)), columns))
	for _, s := range f.Sections() {
		b.WriteString("\n")
		if s.Title != "" {
			b.WriteString(strings.ToUpper(s.Title) + "\n")
		}
		if s.Text != "" {
			b.WriteString(Wrapped("  ", plain(s.Text), columns))
		}
		for _, r := range s.Rows {
			b.WriteString(Wrapped("  - ", r.What+": "+plain(rowText(r)), columns))
		}
		for _, item := range s.List {
			b.WriteString(Wrapped("  - ", plain(item), columns))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rowText is the text of a row. A goal of the KEP is spelled out, and a long list is cut.
func rowText(r findings.Row) string {
	switch r.Are {
	case findings.Demand:
		words := append([]string(nil), r.Words...)
		for i, w := range words {
			for _, g := range findings.Goals {
				if g.Name == w {
					words[i] = "Goals (" + g.Demands + ")"
				}
			}
		}
		return strings.Join(words, "; ")
	case findings.ScenarioName:
		return someOf(r.Words)
	case findings.Prose, findings.Code:
	}
	return strings.Join(r.Words, ", ")
}

// someOf names the first of many.
func someOf(words []string) string {
	if more := len(words) - mostWords; more > 1 {
		return fmt.Sprintf("%s and %d more (-o yaml names all)", strings.Join(words[:mostWords], ", "), more)
	}
	return strings.Join(words, ", ")
}
