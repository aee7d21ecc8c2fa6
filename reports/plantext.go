package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// planWidth is the width of a plan in a terminal, in columns.
const planWidth = 100

// WritePlanText writes the plan for a terminal, without the tables behind it.
func WritePlanText(w io.Writer, p UpgradePlan) error { return writePlanText(w, p, onlyWide) }

// WritePlanWide writes the plan for a terminal, with everything that it has.
func WritePlanWide(w io.Writer, p UpgradePlan) error { return writePlanText(w, p, onlyBrief) }

func writePlanText(w io.Writer, p UpgradePlan, without planDetail) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Upgrade from %s to %s\n", plain(p.From), plain(p.To))
	for _, block := range p.blocks() {
		if block.Detail == without {
			continue
		}
		b.WriteString("\n")
		if block.Heading != "" {
			b.WriteString(strings.ToUpper(block.Heading) + "\n")
		}
		b.WriteString(textBlock(block))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func textBlock(block planBlock) string {
	var b strings.Builder
	switch {
	case block.Table != nil:
		for _, row := range block.Table.Rows {
			b.WriteString(filled("  ", row[0].text()))
			for i, cell := range row[1:] {
				b.WriteString(filled("      ", plain(block.Table.Head[i+1])+": "+cell.text()))
			}
		}
	case block.Code != "":
		b.WriteString(indented(block.Code, "  "))
	case len(block.Ordered) > 0:
		for i, item := range block.Ordered {
			b.WriteString(filled(fmt.Sprintf("  %d. ", i+1), item.Title.text()+" "+item.Text.text()))
			for _, code := range item.Code {
				b.WriteString(indented(code, "       "))
			}
		}
	case len(block.List) > 0:
		for _, item := range block.List {
			b.WriteString(filled("  - ", item.text()))
		}
	default:
		b.WriteString(filled("  ", block.Text.text()))
	}
	return b.String()
}

func (t planText) text() string {
	var b strings.Builder
	for _, span := range t {
		b.WriteString(plain(span.Text))
	}
	return b.String()
}

// filled breaks a text into lines. The first one begins with begin, the others are as far to the
// right.
func filled(begin, text string) string {
	var b strings.Builder
	b.WriteString(begin)
	column, first := len(begin), true
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if !first && column+1+n > planWidth {
			b.WriteString("\n" + strings.Repeat(" ", len(begin)))
			column, first = len(begin), true
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
