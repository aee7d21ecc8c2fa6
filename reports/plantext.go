package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// mostColumns is the width of texts, in columns, where no terminal is narrower.
const mostColumns = 100

// Columns is the width of texts for w. A writer to a terminal has a method of this name.
func Columns(w io.Writer) int {
	if t, ok := w.(interface{ Columns() int }); ok {
		return min(t.Columns(), mostColumns)
	}
	return mostColumns
}

// planForm is how a plan is written as text.
type planForm struct {
	title   string // before the title
	heading func(text string) string
	span    func(planSpan) string
	strong  string // around the title of a step
	margin  string // before every paragraph
	// paragraph begins with begin. stepCode is code that belongs to a step.
	paragraph func(begin, text string, columns int) string
	stepCode  func(code string) string
}

var (
	terminalPlan = planForm{
		heading: func(text string) string { return strings.ToUpper(plain(text)) + "\n" },
		span:    func(s planSpan) string { return plain(s.Text) }, margin: "  ", paragraph: Wrapped,
		stepCode: func(code string) string { return indented(code, "       ") },
	}
	markdownPlan = planForm{
		title: "# ", strong: "**",
		heading:   func(text string) string { return "## " + markdownText(text) + "\n\n" },
		span:      markdownSpan,
		paragraph: func(begin, text string, _ int) string { return begin + text + "\n" },
		stepCode: func(code string) string { // which cannot end its own block
			return "\n   ```\n" + indented(strings.ReplaceAll(code, "```", "'''"), "   ") + "   ```\n"
		},
	}
)

// WritePlanText writes the plan for a terminal, without the tables behind it.
func WritePlanText(w io.Writer, p UpgradePlan) error { return terminalPlan.write(w, p, onlyWide) }

// WritePlanWide writes the plan for a terminal, with everything that it has.
func WritePlanWide(w io.Writer, p UpgradePlan) error { return terminalPlan.write(w, p, onlyBrief) }

// WritePlanMarkdown writes the plan as Markdown (GitHub's), for a ticket or a wiki, without the
// tables behind it.
func WritePlanMarkdown(w io.Writer, p UpgradePlan) error { return markdownPlan.write(w, p, onlyWide) }

func (f planForm) write(w io.Writer, p UpgradePlan, without planDetail) error {
	var b strings.Builder
	b.WriteString(f.title + f.span(planSpan{Text: "Upgrade from " + p.From + " to " + p.To}) + "\n")
	for _, block := range p.blocks() {
		if block.Detail == without {
			continue
		}
		b.WriteString("\n")
		if block.Heading != "" {
			b.WriteString(f.heading(block.Heading))
		}
		b.WriteString(f.block(block, Columns(w)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f planForm) block(block planBlock, columns int) string {
	var b strings.Builder
	switch {
	case block.Table != nil: // only for a terminal, and so is other code than that of a step
		for _, row := range block.Table.Rows {
			b.WriteString(Wrapped("  ", f.text(row[0]), columns))
			for i, cell := range row[1:] {
				b.WriteString(Wrapped("      ", plain(block.Table.Head[i+1])+": "+f.text(cell), columns))
			}
		}
	case block.Code != "":
		b.WriteString(indented(block.Code, "  "))
	case len(block.Ordered) > 0:
		for i, item := range block.Ordered {
			b.WriteString(f.paragraph(fmt.Sprintf("%s%d. ", f.margin, i+1), f.strong+f.text(item.Title)+f.strong+" "+f.text(item.Text), columns))
			for _, code := range item.Code {
				b.WriteString(f.stepCode(code))
			}
		}
	case len(block.List) > 0:
		for _, item := range block.List {
			b.WriteString(f.paragraph(f.margin+"- ", f.text(item), columns))
		}
	default:
		b.WriteString(f.paragraph(f.margin, f.text(block.Text), columns))
	}
	return b.String()
}

func (f planForm) text(t planText) string {
	var b strings.Builder
	for _, span := range t {
		b.WriteString(f.span(span))
	}
	return b.String()
}

// markdownSpan is a span in Markdown. Code has no backquote, at which [prose] cuts.
func markdownSpan(s planSpan) string {
	if s.Code {
		return "`" + plain(s.Text) + "`"
	}
	return markdownText(s.Text)
}

// markdownText escapes what Markdown or HTML in Markdown would read as markup.
func markdownText(s string) string {
	var b strings.Builder
	for _, r := range plain(s) {
		if strings.ContainsRune("\\`*_[]<>|#&~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func filled(begin, text string) string { return Wrapped(begin, text, mostColumns) }

// Wrapped breaks a text into lines of so many columns, if no word is longer. The first line begins
// with begin, the others are as far to the right.
func Wrapped(begin, text string, columns int) string {
	var b strings.Builder
	b.WriteString(begin)
	margin := utf8.RuneCountInString(begin)
	column, first := margin, true
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if !first && column+1+n > columns {
			b.WriteString("\n" + strings.Repeat(" ", margin))
			column, first = margin, true
		}
		if !first {
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column, first = column+n, false
	}
	return b.String() + "\n"
}

func indented(code, indent string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(code, "\n") {
		b.WriteString(strings.TrimRight(indent+plain(line), " ") + "\n")
	}
	return b.String()
}
