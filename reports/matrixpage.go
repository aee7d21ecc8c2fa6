package reports

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// page has a table of verdicts for each pair of versions. It links to the reports of the runs,
// which are in the same directory.
func (m VersionMatrix) page() page {
	p := page{
		Title: "Versions, subjects, scenarios", Outcome: m.Result.Outcome(), Sentence: m.Sentence,
		Lead: fmt.Sprintf("The same scenarios, on the backend %s, with every subject in every pair of versions. All invariants judged every run: "+
			"✓ held, ✗ violated, · inconclusive. The result is that of the core invariants, which are what the KEP demands. "+
			"Subject none is the negative control: it must fail.", m.Metadata.Backend),
		Facts:  m.Metadata.facts([][2]string{{"Backend", m.Metadata.Backend}, {"Pairs of versions", fmt.Sprint(len(m.Pairs))}, {"Runs", fmt.Sprint(len(m.Cells))}}),
		Tested: m.Metadata.Tested, Reproduce: m.Reproduce, SkewproofVersion: m.Metadata.SkewproofVersion, Document: MatrixJSON, TypeMeta: m.TypeMeta,
	}
	if !m.Metadata.Complete {
		p.Notes = append(p.Notes, "The matrix ended before every run was carried out")
	}
	for n, pair := range m.Pairs {
		s := section{Heading: pair.String(), Note: sentence(capital(pair.Note)), Table: &table{
			Head: invariantHeads(heads("scenario", "subject", "result", "known or NEW"), m.Invariants),
		}}
		for _, c := range newFirst(m.Cells, MatrixCell.attributed) {
			if c.Pair == n {
				s.Table.Rows = append(s.Table.Rows, c.row())
				s.List = append(s.List, c.told()...)
			}
		}
		p.Sections = append(p.Sections, s)
	}
	return p
}

// row has the result of the run, and its verdicts.
func (c MatrixCell) row() []tableCell {
	result := tableCell{Text: string(c.Core.Result), Outcome: c.Core.Result.Outcome()}
	if c.AsItMust() {
		result = tableCell{Text: result.Text + ", as it must", Outcome: invariant.OutcomeInconclusive}
	}
	if c.Directory != "" && len(c.Verdicts) > 0 {
		result.Link = path.Join(filepath.ToSlash(c.Directory), HTMLFile)
	}
	row := []tableCell{{Text: c.Scenario}, {Text: c.Subject}, result, {Text: c.Core.Explained()}}
	for _, v := range c.Verdicts {
		row = append(row, verdictCell(v))
	}
	return row
}

// told is what the run has to say beyond its verdicts; nil if there is nothing.
func (c MatrixCell) told() []item {
	if c.Trouble == "" && (c.Core.Result == ResultPassed || c.AsItMust()) {
		return nil
	}
	told, evidence := []string{c.Scenario + ", " + c.Subject}, ""
	if c.Trouble != "" {
		told, evidence = append(told, firstLine(c.Trouble)), "evidence: "+c.Directory
	}
	if !strings.HasPrefix(c.Trouble, c.Core.Reason) || c.Trouble == "" {
		told = append(told, c.Core.Reason)
	}
	return []item{{Text: strings.Join(told, ": "), Note: evidence}}
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
