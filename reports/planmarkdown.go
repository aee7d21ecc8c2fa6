package reports

import (
	"fmt"
	"io"
	"strings"
)

// WritePlanMarkdown writes the plan as Markdown (GitHub's), for a ticket or a wiki, without the
// tables behind it.
func WritePlanMarkdown(w io.Writer, p UpgradePlan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Upgrade from %s to %s\n", markdownText(p.From), markdownText(p.To))
	for _, block := range p.blocks() {
		if block.Detail == onlyWide {
			continue
		}
		b.WriteString("\n")
		if block.Heading != "" {
			fmt.Fprintf(&b, "## %s\n\n", markdownText(block.Heading))
		}
		b.WriteString(markdownBlock(block))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownBlock(block planBlock) string {
	var b strings.Builder
	switch {
	case block.Table != nil:
		b.WriteString("|")
		for _, h := range block.Table.Head {
			b.WriteString(" " + markdownText(h) + " |")
		}
		b.WriteString("\n|" + strings.Repeat("---|", len(block.Table.Head)) + "\n")
		for _, row := range block.Table.Rows {
			b.WriteString("|")
			for _, cell := range row {
				b.WriteString(" " + cell.markdown(true) + " |")
			}
			b.WriteString("\n")
		}
	case block.Code != "":
		b.WriteString(fenced(block.Code, ""))
	case len(block.Ordered) > 0:
		for i, item := range block.Ordered {
			fmt.Fprintf(&b, "%d. **%s** %s\n", i+1, item.Title.markdown(false), item.Text.markdown(false))
			for _, code := range item.Code {
				b.WriteString("\n" + fenced(code, "   "))
			}
		}
	case len(block.List) > 0:
		for _, item := range block.List {
			b.WriteString("- " + item.markdown(false) + "\n")
		}
	default:
		b.WriteString(block.Text.markdown(false) + "\n")
	}
	return b.String()
}

// markdown renders text with its code. In a cell of a table, a bar in code is escaped as well.
func (t planText) markdown(cell bool) string {
	var b strings.Builder
	for _, span := range t {
		if !span.Code {
			b.WriteString(markdownText(span.Text))
			continue
		}
		text := plain(span.Text)
		// The fence is longer than any run of backquotes in the code (CommonMark 0.31.2, 6.1).
		fence := strings.Repeat("`", longestRun(text, '`')+1)
		if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || text == "" {
			text = " " + text + " "
		}
		if cell {
			text = strings.ReplaceAll(text, "|", `\|`)
		}
		b.WriteString(fence + text + fence)
	}
	return b.String()
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

func fenced(code, indent string) string {
	fence := strings.Repeat("`", max(3, longestRun(code, '`')+1))
	var b strings.Builder
	b.WriteString(indent + fence + "\n")
	for line := range strings.SplitSeq(code, "\n") {
		b.WriteString(strings.TrimRight(indent+plain(line), " ") + "\n")
	}
	return b.String() + indent + fence + "\n"
}

func longestRun(s string, of rune) (longest int) {
	run := 0
	for _, r := range s {
		if r != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
