package reports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// MatrixKind identifies a version matrix, together with [APIVersion].
const MatrixKind = "VersionMatrix"

// MatrixJSON is the file of a version matrix for programs.
const MatrixJSON = "matrix.json"

// VersionMatrix is the results of scenarios on several subjects in several pairs of versions.
type VersionMatrix struct {
	TypeMeta
	// Metadata says when the matrix was run, with which program and on which backend.
	Metadata MatrixMetadata `json:"metadata"`
	// Result is "failed" if any subject except the negative control violated a demand of the KEP, and
	// findings do not explain all of it. Otherwise it is "inconclusive" if a run proved nothing, if
	// the negative control did not fail or was not run, or if nothing else was run. Otherwise it is
	// "known" if a subject violated the KEP, or else "passed".
	Result Result `json:"result"`
	// Sentence says the result in one sentence.
	Sentence string `json:"sentence"`
	// Invariants are the invariants by which every run was judged, in the order of the catalogue.
	Invariants []MatrixInvariant `json:"invariants"`
	// Pairs are the pairs of versions, in the order in which they were asked for.
	Pairs []VersionPair `json:"pairs"`
	// Cells are the runs, by pair, scenario and subject.
	Cells []MatrixCell `json:"cells"`
	Repetition
}

// MatrixMetadata says when a matrix was run, with which program and on which backend.
type MatrixMetadata struct {
	Made
	// Backend says what the servers ran on.
	Backend string `json:"backend"`
	// Known is true if what findings explain passes in CI (--known). It changes no result.
	Known bool `json:"known,omitempty"`
	// Complete is false if the matrix was ended before every run was done.
	Complete bool `json:"complete"`
	Tested
}

// MatrixInvariant is one column.
type MatrixInvariant struct {
	// Name is the name in the catalogue. Grade is "core" (the KEP demands it) or "extended" (beyond
	// the KEP).
	Name  string          `json:"name"`
	Grade invariant.Grade `json:"grade"`
	// Sentence says what must hold.
	Sentence string `json:"sentence"`
}

// VersionPair is the versions of one part of the matrix.
type VersionPair struct {
	// From and To are as 'skewproof run' takes them.
	From string `json:"from"`
	To   string `json:"to"`
	// Note says what is special about the pair. It is empty for two consecutive minor versions.
	Note string `json:"note,omitempty"`
}

// String is "v1.36.3 → v1.37.1".
func (p VersionPair) String() string { return p.From + " → " + p.To }

// MatrixCell is one run.
type MatrixCell struct {
	// Pair is the index of the pair of versions, counted from 0.
	Pair int `json:"pair"`
	// Scenario and Subject are as 'skewproof run' takes them.
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	// MustFail is true for a negative control: a scenario that must fail on the subject none.
	MustFail bool `json:"mustFail,omitempty"`
	// Core and Extended are the results by profile.
	Core     ProfileResult `json:"core"`
	Extended ProfileResult `json:"extended"`
	// Verdicts are the verdicts on the invariants of the matrix, in their order. It is empty if
	// nothing was judged.
	Verdicts []invariant.Outcome `json:"verdicts,omitempty"`
	// Trouble says why the run did not end as planned: a crash, a failed start, a hang, or a
	// refusal.
	Trouble string `json:"trouble,omitempty"`
	// DurationSeconds is how long the run took. It is 0 if nothing was run.
	DurationSeconds Seconds `json:"durationSeconds"`
	// Directory holds history, logs and the full report, relative to this file. It is empty if
	// nothing ran.
	Directory string `json:"directory,omitempty"`
	// Reproduce is the command line that repeats the run.
	Reproduce string `json:"reproduce,omitempty"`
}

// subjectNone is the negative control.
const subjectNone = "none"

// NewMatrix makes a matrix from cells that have been run.
func NewMatrix(metadata MatrixMetadata, pairs []VersionPair, cells []MatrixCell) VersionMatrix {
	m := VersionMatrix{TypeMeta: OfKind(MatrixKind), Metadata: metadata, Pairs: pairs, Cells: cells, Invariants: catalogue()}
	m.Result, m.Sentence = m.conclusion()
	return m
}

// catalogue are the columns of tables with all invariants.
func catalogue() []MatrixInvariant {
	all := []MatrixInvariant{}
	for _, i := range invariant.All() {
		all = append(all, MatrixInvariant{Name: i.Name, Grade: i.Grade, Sentence: i.Sentence})
	}
	return all
}

// SetVerdicts fills in the results of a run.
func (c *MatrixCell) SetVerdicts(r RunReport) {
	c.Core, c.Extended, c.Reproduce = r.InProfile(invariant.GradeCore), r.InProfile(invariant.GradeExtended), r.Reproduce
	c.Trouble, c.Verdicts = r.Metadata.Error, nil
	for _, i := range invariant.All() {
		verdict := invariant.OutcomeInconclusive // if the run lacks it
		if n := slices.IndexFunc(r.Invariants, func(have Invariant) bool { return have.Name == i.Name }); n >= 0 {
			verdict = r.Invariants[n].Outcome
		}
		c.Verdicts = append(c.Verdicts, verdict)
	}
}

func (m *VersionMatrix) conclusion() (Result, string) {
	var undecided, skipped, blind, controls, free int
	var tested []ProfileResult
	for _, c := range m.Cells {
		switch {
		case c.Core.Result == ResultSkipped:
			skipped++
		case c.Subject == subjectNone && !c.MustFail:
			free++
		case c.Subject == subjectNone:
			controls++
			if !c.AsItMust() {
				blind++
			}
		default:
			tested = append(tested, c.Core)
			if c.Core.Result == ResultInconclusive {
				undecided++
			}
		}
	}
	told := "the KEP was " + cmp.Or(violatedIn("run", tested), fmt.Sprintf("not seen violated in %s", counted(len(tested), "run")))
	told += alsoCounted(undecided, "proved nothing") + alsoCounted(skipped, "were not run") +
		alsoCounted(blind, "with no proxy did not, as they must")
	switch {
	case controls == 0:
		told += "; none was the negative control, no proxy, so nothing shows that they could have failed"
	case blind == 0:
		told += fmt.Sprintf("; with no proxy %d of %d did, as they must", controls, controls)
	}
	return resultOf(m.Standing()), told
}

var matrices = readable[VersionMatrix]{"version matrix", MatrixKind, "run the matrix again to write a new one", false, VersionMatrix.check}

// ReadMatrix reads a version matrix. It refuses any other document, unknown fields and a result
// that does not follow from the runs. The error names the file and what is wrong with it.
func ReadMatrix(path string) (VersionMatrix, error) { return matrices.read(path) }

// check refuses a matrix that the renderings could not show truthfully.
func (m VersionMatrix) check() error {
	for n, c := range m.Cells {
		if c.Pair < 0 || c.Pair >= len(m.Pairs) || len(c.Verdicts) != 0 && len(c.Verdicts) != len(m.Invariants) {
			return fmt.Errorf("cells[%d] is of no pair of versions, or has not one verdict for each invariant", n)
		}
		if i := slices.IndexFunc(c.Verdicts, func(o invariant.Outcome) bool { return !known(o) }); i >= 0 {
			return fmt.Errorf("cells[%d]: verdict %q is not pass, fail or inconclusive", n, c.Verdicts[i])
		}
		for _, p := range []ProfileResult{c.Core, c.Extended} {
			if err := p.check(); err != nil {
				return fmt.Errorf("cells[%d] %w", n, err)
			}
		}
	}
	if result, _ := m.conclusion(); m.Result != result {
		return fmt.Errorf("result is %q, and its runs make it %q: the file was altered", m.Result, result)
	}
	return nil
}
