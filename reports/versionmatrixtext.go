package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// WriteMatrixText writes the matrix for a terminal: a table for each pair of versions, in which every invariant is one column.
func WriteMatrixText(w io.Writer, m VersionMatrix, opts SummaryOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n", paint(opts, outcomes[m.Result], strings.ToUpper(string(m.Result))+":"), plain(m.Sentence))
	for n, i := range m.Invariants {
		beyond := ""
		if i.Grade != invariant.GradeCore {
			beyond = " (beyond the KEP)"
		}
		fmt.Fprintf(&b, "  %s  %s%s\n", column(n), i.Name, beyond)
	}
	b.WriteString("  ✓ held   ✗ violated   · nothing could be said\n")
	for n, pair := range m.Pairs {
		fmt.Fprintf(&b, "\n%s", plain(pair.String()))
		if pair.Note != "" {
			fmt.Fprintf(&b, " (%s)", plain(pair.Note))
		}
		fmt.Fprintf(&b, "\n  %-26s %-10s %-13s ", "scenario", "subject", "core")
		for i := range m.Invariants {
			b.WriteString(column(i))
		}
		b.WriteString("\n")
		for _, c := range m.Cells {
			if c.Pair == n {
				writeCell(&b, c, opts)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCell(b *strings.Builder, c MatrixCell, opts SummaryOptions) {
	result := string(c.Core.Result)
	if len(c.Verdicts) > 0 {
		result = fmt.Sprintf("%-14s", result)
	}
	fmt.Fprintf(b, "  %-26s %-10s %s", plain(c.Scenario), plain(c.Subject), paint(opts, outcomes[c.Core.Result], result))
	for _, v := range c.Verdicts {
		b.WriteString(paint(opts, v, mark(v)))
	}
	b.WriteString("\n")
	switch {
	case c.Trouble != "":
		fmt.Fprintf(b, "    %s\n    evidence: %s\n", plain(firstLine(c.Trouble)), plain(c.Directory))
	case c.Core.Result == ResultInconclusive || c.Core.Result == ResultSkipped:
		fmt.Fprintf(b, "    %s\n", plain(c.Core.Reason))
	}
}

// column is the letter of a column: a to z, then A to Z.
func column(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return letters[n%len(letters) : n%len(letters)+1]
}

// mark is the sign of a verdict where nothing but the sign is shown.
func mark(o invariant.Outcome) string {
	if o == invariant.OutcomeInconclusive {
		return "·"
	}
	return sign(o)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
