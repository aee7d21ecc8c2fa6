package suite

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// matrixPairs are the pairs of versions of the matrix, oldest first.
var matrixPairs = []reports.VersionPair{
	{From: "v1.30.14+without.batch.v1", To: "v1.30.14",
		Note: "the design of 1.28, which knows who serves what by StorageVersion objects; one release, " +
			"of which the older servers have batch/v1 switched off"},
	{From: "v1.34.4", To: "v1.35.4"},
	{From: "v1.35.4", To: "v1.36.3"},
	{From: "v1.36.3", To: "v1.37.1"},
	{From: "v1.34.4", To: "v1.37.1", Note: "mixed by mistake: further apart than Kubernetes supports"},
}

// MatrixScenarios are the default scenarios of the matrix: an upgrade without faults, and the two
// in which knowledge is lost.
var MatrixScenarios = []string{"rolling-upgrade", "restart-during-partition", "peer-crash"}

// MatrixPairs returns the default pairs of the matrix, as FROM..TO.
func MatrixPairs() (pairs []string) {
	for _, p := range matrixPairs {
		pairs = append(pairs, p.From+".."+p.To)
	}
	return pairs
}

// Matrix runs scenarios over several pairs of versions and several subjects, and shows all verdicts
// in one table.
type Matrix struct {
	Options
	// Spec holds the settings of all runs.
	Spec run.Spec
	// Scenarios, Subjects and Pairs (as FROM..TO) are the values to combine.
	Scenarios, Subjects, Pairs []string
}

// cell is a run of the matrix.
type cell struct {
	reports.MatrixCell
	plan *run.Plan // nil if the cell cannot be run
}

// Run runs every combination, and shows and saves the table.
func (m *Matrix) Run(ctx context.Context) (reports.VersionMatrix, error) {
	pairs, err := m.versionPairs()
	if err != nil {
		return reports.VersionMatrix{}, err
	}
	cells, err := m.cells(pairs)
	if err != nil {
		return reports.VersionMatrix{}, err
	}
	if err := m.Prepare(ctx, "matrix-"+m.Spec.Backend, plansOf(cells)); err != nil {
		return reports.VersionMatrix{}, err
	}
	began := time.Now()
	tasks := make([]task, len(cells))
	for i, c := range cells {
		if c.plan != nil {
			c.Directory = fmt.Sprintf("%d-%s-%s", c.Pair+1, c.Scenario, c.Subject)
			tasks[i] = taskOf(c.plan, filepath.Join(m.Out, c.Directory))
		}
	}
	complete := true
	var done []reports.MatrixCell
	for i, f := range m.carryOut(ctx, tasks) {
		c := cells[i]
		c.finish(f)
		if complete = complete && f.Begun; f.Begun {
			fmt.Fprintf(m.Console.Progress, "%d of %d: %s, %s, %s: %s, %.0f s\n",
				i+1, len(cells), pairs[c.Pair], c.Scenario, c.Subject, c.Core.Result, float64(c.DurationSeconds))
		}
		done = append(done, c.MatrixCell)
	}
	table := reports.NewMatrix(reports.MatrixMetadata{
		Made: reports.NewMade(began, run.Version()), Backend: m.Spec.Backend,
		Known: m.Spec.Known != "", Tested: reports.Tested{Label: m.Spec.Label, Binaries: m.Binaries}, Complete: complete && ctx.Err() == nil,
	}, pairs, done)
	table.Reproduce, table.Environment = m.Reproduce, run.Machine()
	return table, Render(table, m.Out, m.Console)
}

// versionPairs parses the pairs. Pairs of the default matrix keep their note.
func (m *Matrix) versionPairs() (pairs []reports.VersionPair, err error) {
	for _, word := range m.Pairs {
		from, to, ok := strings.Cut(word, "..")
		if !ok {
			return nil, run.Usagef("--pairs %q: write FROM..TO, such as v1.36.3..v1.37.1", word)
		}
		pair := reports.VersionPair{From: from, To: to}
		if i := slices.IndexFunc(matrixPairs, func(known reports.VersionPair) bool { return known.From == from && known.To == to }); i >= 0 {
			pair = matrixPairs[i]
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// cells checks every run before any begins. If a subject, version or backend cannot do a run, the
// cell says so. Every other error is wrong usage.
func (m *Matrix) cells(pairs []reports.VersionPair) (cells []*cell, err error) {
	for _, f := range []struct {
		flag  string
		words []string
	}{{"pairs", m.Pairs}, {"scenarios", m.Scenarios}, {"subjects", m.Subjects}} {
		for n, word := range f.words {
			if slices.Contains(f.words[:n], word) {
				return nil, run.Usagef("--%s names %s twice", f.flag, word)
			}
		}
	}
	for _, subject := range m.Subjects {
		if !slices.Contains(run.SimulatedSubjects, subject) {
			return nil, run.Usagef("--subjects %q: there are %s", subject, strings.Join(run.SimulatedSubjects, ", "))
		}
	}
	if err := m.checkBinaries(pairs); err != nil {
		return nil, err
	}
	trouble := "no pair, scenario or subject is named"
	for n, pair := range pairs {
		for _, name := range m.Scenarios {
			chosen, err := scenarios.Find(name)
			if err != nil {
				return nil, run.Usagef("%w", err)
			}
			for _, subject := range m.Subjects {
				c := &cell{MatrixCell: reports.MatrixCell{Pair: n, Scenario: name, Subject: subject}}
				c.MustFail = subject == scenario.SubjectNone && chosen.Control.Subject == subject
				spec := m.Spec
				spec.Scenario, spec.Subject, spec.From, spec.To = name, subject, pair.From, pair.To
				spec.Binaries = m.Spec.Binaries.Of(spec.Used())
				err := ownServers(spec)
				if err == nil {
					c.plan, err = spec.Plan()
				}
				if err != nil {
					c.plan = nil
					c.Core = reports.ProfileResult{Result: reports.ResultSkipped, Reason: err.Error()}
					c.Extended = c.Core
				}
				cells = append(cells, c)
			}
		}
	}
	if len(plansOf(cells)) > 0 {
		return cells, nil
	}
	if len(cells) > 0 {
		trouble = cells[0].Core.Reason
	}
	return nil, run.Usagef("nothing of this matrix can be run: %s", trouble)
}

// checkBinaries refuses a binary that no pair of versions uses, because nothing would test it.
func (m *Matrix) checkBinaries(pairs []reports.VersionPair) error {
	var used []binaries.Ref
	for _, pair := range pairs {
		for _, subject := range m.Subjects {
			used = append(used, run.Spec{Subject: subject, From: pair.From, To: pair.To}.Used()...)
		}
	}
	for ref, path := range m.Spec.Binaries {
		if !slices.Contains(used, ref) {
			return run.Usagef("--binary %s@%s=%s: no pair of versions has it; name one with --pairs", ref.Component, ref.Version, path)
		}
		if err := m.Spec.Binaries.Check(ref); err != nil {
			return run.Usagef("--binary: %w", err)
		}
	}
	return nil
}

// plansOf returns the plans of the cells that can be run.
func plansOf(cells []*cell) (plans []*run.Plan) {
	for _, c := range cells {
		if c.plan != nil {
			plans = append(plans, c.plan)
		}
	}
	return plans
}

// finish stores the result of the cell's run. A cell that cannot be run already has a result.
func (c *cell) finish(f Finished) {
	if c.plan == nil {
		return
	}
	if !f.Begun {
		c.Core = reports.ProfileResult{Result: reports.ResultSkipped, Reason: "not run: the matrix was ended before its turn came"}
		c.Extended, c.Directory = c.Core, ""
		return
	}
	c.DurationSeconds = reports.SecondsOf(f.Took)
	if f.Report != nil {
		c.SetVerdicts(*f.Report)
	}
	if f.Problem != "" {
		c.Trouble = cmp.Or(c.Trouble, f.Problem)
		if f.Report == nil || !f.Report.Standing().Violated {
			c.Core = reports.ProfileResult{Result: reports.ResultInconclusive, Reason: c.Trouble}
			c.Extended = c.Core
		}
	}
}
