package reports

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

var (
	matrixPage = newPage("matrix/", "matrix")
	matrixHead = newHead(nil, "matrix/matrix.css")
)

// matrixDocument is the input of the template.
type matrixDocument struct {
	VersionMatrix
	head
	*described
	Parts []matrixPart
	JSON  string
}

// matrixPart is one pair of versions with its runs.
type matrixPart struct {
	VersionPair
	Cells []MatrixCell
	// Told are the cells that have more to say than their verdicts.
	Told []MatrixCell
}

// WriteMatrixHTML writes the matrix as one self-contained page without scripts, like [WriteHTML].
// The page links to the reports of the runs, which are in the same directory.
func WriteMatrixHTML(w io.Writer, m VersionMatrix) error {
	d := matrixDocument{VersionMatrix: m, head: matrixHead, described: newDescribed(), JSON: MatrixJSON}
	for n, pair := range m.Pairs {
		part := matrixPart{VersionPair: pair}
		for _, c := range m.Cells {
			if c.Pair != n {
				continue
			}
			part.Cells = append(part.Cells, c)
			if c.Trouble != "" || c.Core.Result != ResultPassed && !c.AsItMust() {
				part.Told = append(part.Told, c)
			}
		}
		part.Cells = newFirst(part.Cells, MatrixCell.attributed)
		part.Told = newFirst(part.Told, MatrixCell.attributed)
		d.Parts = append(d.Parts, part)
	}
	return writePage(w, matrixPage, d)
}

// attributed is the result that distinguishes NEW violations. A negative control says nothing about
// the subject.
func (c MatrixCell) attributed() ProfileResult {
	if c.AsItMust() {
		return ProfileResult{}
	}
	return c.Core
}

// AsItMust reports whether the cell is the negative control and failed.
func (c MatrixCell) AsItMust() bool { return c.Subject == subjectNone && c.Core.Result == ResultFailed }

// Page is the path of the report of the run. It is empty if there is none.
func (c MatrixCell) Page() string {
	if c.Directory == "" || len(c.Verdicts) == 0 {
		return ""
	}
	return filepath.ToSlash(filepath.Join(c.Directory, HTMLFile))
}

// WriteMatrixText writes the matrix for a terminal: a table for each pair of versions, without
// files.
func WriteMatrixText(w io.Writer, m VersionMatrix, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: SummaryOptions{Color: opts.Color}}
	t.verdict(m.Result.Outcome(), m.Sentence)
	m.Metadata.summarize(t)
	for n, i := range m.Invariants {
		beyond := ""
		if i.Grade != invariant.GradeCore {
			beyond = " (beyond the KEP)"
		}
		fmt.Fprintf(t, "  %s  %s%s\n", column(n), plain(i.Name), beyond)
	}
	t.WriteString("  ✓ held   ✗ violated   · inconclusive\n")
	for n, pair := range m.Pairs {
		fmt.Fprintf(t, "\n%s", plain(pair.String()))
		if pair.Note != "" {
			fmt.Fprintf(t, " (%s)", plain(pair.Note))
		}
		fmt.Fprintf(t, "\n  %-26s %-10s %-13s ", "scenario", "subject", "core")
		for i := range m.Invariants {
			t.WriteString(column(i))
		}
		t.WriteString("  known or NEW\n")
		for _, c := range newFirst(m.Cells, MatrixCell.attributed) {
			if c.Pair == n {
				t.cell(c)
			}
		}
	}
	return t.end(w)
}

func (t *terminal) cell(c MatrixCell) {
	result := string(c.Core.Result)
	if len(c.Verdicts) > 0 {
		result = fmt.Sprintf("%-14s", result)
	}
	fmt.Fprintf(t, "  %-26s %-10s %s", plain(c.Scenario), plain(c.Subject), t.paint(c.Core.Result.Outcome(), result))
	for _, v := range c.Verdicts {
		t.WriteString(t.paint(v, mark(v)))
	}
	if label := c.Core.Attribution(); label != "" {
		fmt.Fprintf(t, "  %s", label)
	}
	t.WriteString("\n")
	switch {
	case c.Trouble != "":
		fmt.Fprintf(t, "    %s\n    evidence: %s\n", plain(firstLine(c.Trouble)), plain(c.Directory))
	case c.Core.Result == ResultInconclusive || c.Core.Result == ResultSkipped:
		fmt.Fprintf(t, "    %s\n", plain(c.Core.Reason))
	}
}

// column is the letter of a column: a to z, then A to Z.
func column(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return letters[n%len(letters) : n%len(letters)+1]
}

// mark is the sign of a verdict in places that show only the sign.
func mark(o invariant.Outcome) string {
	if o == invariant.OutcomeInconclusive {
		return "·"
	}
	return sign(o)
}

// longestLine is the largest size of a quoted line, in bytes. A spec may print a whole object.
const longestLine = 300

// firstLine returns the beginning of the first line.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if len(line) > longestLine {
		line = strings.ToValidUTF8(line[:longestLine], "") + "…"
	}
	return line
}
