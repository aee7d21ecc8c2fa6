package reports

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

var (
	parityPage = newPage("parity/", "parity")
	parityHead = newHead(nil, "matrix/matrix.css", "parity/parity.css")
)

// parityDocument is the input of the template.
type parityDocument struct {
	Parity
	head
	// Compared is the number of pairs that were compared.
	Compared int
	// Rows are all pairs: first those that disagree, those that were not compared, and the others.
	Rows  []parityRow
	Files struct{ JSON, JUnit string }
}

// parityRow is a pair with a cell for each invariant. A pair that was not compared has no cell.
type parityRow struct {
	*ParityPair
	Cells []parityCell
}

// parityCell is the two verdicts on an invariant. Class is "agree", "known" or "unknown".
type parityCell struct {
	Invariant  string
	Local, Sim invariant.Outcome
	Class      string
}

// WriteParityHTML writes the comparison as one self-contained page without scripts, like
// [WriteHTML]. The page links to the reports of the runs.
func WriteParityHTML(w io.Writer, p Parity) error {
	d := parityDocument{Parity: p, head: parityHead}
	d.Files.JSON, d.Files.JUnit = ParityJSON, JUnitFile
	d.Compared, _, _, _ = p.counts()
	for i := range p.Pairs {
		d.Rows = append(d.Rows, parityRow{&p.Pairs[i], p.cells(&p.Pairs[i])})
	}
	slices.SortStableFunc(d.Rows, func(a, b parityRow) int { return cmp.Compare(a.rank(), b.rank()) })
	return writePage(w, parityPage, d)
}

// rank puts pairs that need a look first.
func (p *ParityPair) rank() int {
	switch {
	case p.unknown() > 0:
		return 0
	case len(p.Disagreements) > 0:
		return 1
	case !p.Compared():
		return 2
	default:
		return 3
	}
}

// cells are the verdicts of a pair.
func (p Parity) cells(pair *ParityPair) (cells []parityCell) {
	for n, local := range pair.Local {
		c := parityCell{p.Invariants[n].Name, local, pair.Sim[n], "agree"}
		if i := slices.IndexFunc(pair.Disagreements, func(d ParityDisagreement) bool { return d.Invariant == c.Invariant }); i >= 0 {
			c.Class = pair.Disagreements[i].Class()
		}
		cells = append(cells, c)
	}
	return cells
}

// Class is "known" or "unknown".
func (d ParityDisagreement) Class() string {
	if d.Why == "" {
		return "unknown"
	}
	return "known"
}

// Reason is the reason of the disagreement in words.
func (d ParityDisagreement) Reason() string { return cmp.Or(d.Why, "NOT KNOWN") }

// Differing are all pairs that disagree, the unknown disagreements first.
func (d parityDocument) Differing() []parityRow {
	return d.rowsOf(func(p *ParityPair) bool { return len(p.Disagreements) > 0 })
}

// Missing are the pairs that were not compared. WithCauses are those with kinds of violations.
func (d parityDocument) Missing() []parityRow {
	return d.rowsOf(func(p *ParityPair) bool { return !p.Compared() })
}

func (d parityDocument) WithCauses() []parityRow {
	return d.rowsOf(func(p *ParityPair) bool { return p.Causes != nil })
}

func (d parityDocument) rowsOf(chosen func(*ParityPair) bool) (rows []parityRow) {
	for _, r := range d.Rows {
		if chosen(r.ParityPair) {
			rows = append(rows, r)
		}
	}
	return rows
}

// LocalPage and SimPage are the paths of the reports of the runs. They are empty if there is none.
func (p *ParityPair) LocalPage() string { return pageIn(p.LocalDirectory) }
func (p *ParityPair) SimPage() string   { return pageIn(p.SimDirectory) }

func pageIn(dir string) string {
	if dir == "" {
		return ""
	}
	return path.Join(filepath.ToSlash(dir), HTMLFile)
}

// WriteParityText writes the comparison for a terminal. It shows the pairs that were compared.
func WriteParityText(w io.Writer, p Parity, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts}
	rows := [][]string{{"scenario", "subject", "agree", "disagree"}}
	for i := range p.Pairs {
		if c := &p.Pairs[i]; c.Compared() {
			var differing []string
			for _, d := range c.Disagreements {
				differing = append(differing, fmt.Sprintf("%s (%s, sim %s)", d.Invariant, d.Local, d.Sim))
			}
			rows = append(rows, []string{c.Scenario, c.Subject, c.Agreement(), strings.Join(differing, ", ")})
		}
	}
	if err := t.columns(rows); err != nil {
		return err
	}
	for i := range p.Pairs {
		t.disagreements(&p.Pairs[i])
	}
	switch compared, _, _, unknown := p.counts(); {
	case compared < len(p.Pairs):
		fmt.Fprintf(t, "%d of %d were compared.\n", compared, len(p.Pairs))
	case unknown > 0:
		fmt.Fprintf(t, "\n%d disagreements are not known: correct the simulator, or explain them in sim/parity/known.json.\n", unknown)
	default:
		t.WriteString("\nEvery disagreement is known.\n")
	}
	return t.end(w, ParityHTML, ParityJSON)
}

// disagreements shows the disagreements of a pair with their reasons, and what only one of its runs
// shows.
func (t *terminal) disagreements(p *ParityPair) {
	for _, d := range p.Disagreements {
		fmt.Fprintf(t, "\n%s\n  %s\n", plain(d.String()), plain(d.Reason()))
	}
	if p.Causes == nil {
		return
	}
	fmt.Fprintf(t, "\n%s, %s: %d kinds of violations on both\n", plain(p.Scenario), plain(p.Subject), p.Causes.Both)
	for _, cause := range p.Causes.OnlyLocal {
		fmt.Fprintf(t, "  only on real processes: %s\n", plain(cause))
	}
	for _, cause := range p.Causes.OnlySim {
		fmt.Fprintf(t, "  only in the simulator:  %s\n", plain(cause))
	}
}

// WriteParityJUnit writes the comparison as JUnit XML: a test case for each pair, and the case
// [OverallCase], because no other case says that pairs were not compared. The class of a case is
// "parity." with the subject, and its name is that of the scenario. A case is skipped if all its
// disagreements are known, or if it was not compared.
func WriteParityJUnit(w io.Writer, p Parity) error {
	suite := JUnitSuite{
		Name: "skewproof parity", Package: "parity", Time: JUnitSeconds(p.Metadata.DurationSeconds),
		Timestamp: NewJUnitTime(p.Metadata.StartedAt), Properties: p.Metadata.Properties(),
	}
	for i := range p.Pairs {
		suite.Cases = append(suite.Cases, p.Pairs[i].junit())
	}
	overall := JUnitCase{Classname: "parity", Name: OverallCase}
	if p.Result != ResultPassed {
		overall.Failure = &JUnitMessage{Message: string(p.Result) + ": " + p.Sentence, Type: string(p.Result)}
	}
	suite.Cases = append(suite.Cases, overall)
	return suite.write(w)
}

func (p *ParityPair) junit() JUnitCase {
	c := JUnitCase{Classname: "parity." + p.Subject, Name: p.Scenario}
	var unknown, known []string
	for _, d := range p.Disagreements {
		if d.Why == "" {
			unknown = append(unknown, d.String())
		} else {
			known = append(known, d.String()+": "+d.Why)
		}
	}
	switch {
	case !p.Compared():
		c.Skipped = &JUnitMessage{Message: "not compared: " + p.NotCompared}
	case len(unknown) > 0:
		c.Failure = &JUnitMessage{Message: strings.Join(unknown, "; "), Type: "not known", Text: strings.Join(append(unknown, known...), "\n")}
	case len(known) > 0:
		c.Skipped = &JUnitMessage{Message: "known: " + strings.Join(known, "; ")}
	default:
		c.SystemOut = p.Agreement() + " verdicts agree"
	}
	return c
}
