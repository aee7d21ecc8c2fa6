package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/scenarios/conformance"
)

// matrixPairs are the pairs of versions of the matrix, oldest first.
var matrixPairs = []reports.VersionPair{
	{From: "v1.30.14+without.batch.v1", To: "v1.30.14", Note: "the design of 1.28, which knows who serves what by StorageVersion objects; one release, " +
		"of which the older servers have batch/v1 switched off"},
	{From: "v1.34.4", To: "v1.35.4"},
	{From: "v1.35.4", To: "v1.36.3"},
	{From: "v1.36.3", To: "v1.37.1"},
	{From: "v1.34.4", To: "v1.37.1", Note: "mixed by mistake: further apart than Kubernetes supports"},
}

// matrixScenarios are those of the matrix unless others are named: an upgrade with nothing else, and the two in which knowledge is lost.
var matrixScenarios = []string{"rolling-upgrade", "restart-during-partition", "peer-crash"}

// matrixFlags are the flags of 'skewproof matrix'.
type matrixFlags struct {
	backend          string
	names, subjects  []string
	pairs            []string
	qps              float64
	parallel         int
	out, commandLine string
}

func newMatrix() *cobra.Command {
	var f matrixFlags
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "Run scenarios over several pairs of versions and all subjects, and show all verdicts in one table",
		Long: `Run scenarios over several pairs of versions and all subjects, and show all verdicts in one table: as text, JSON and HTML. A server that
crashes, hangs or cannot start in some pair is a result: its run's directory has the evidence. Runs are carried out one after the other, or N at a
time with --parallel N, where the machine has a processor and 2 GB of memory for each.

The pair v1.30.14+without.batch.v1..v1.30.14 is the design of 1.28 for real: servers of one release, some of which have an API switched off.

Exit code 1: a subject violated what the KEP demands; 2: a run proved nothing, or the negative control (subject none) did not fail,
was left out, or was all that was run.`,
		Example: `  skewproof matrix --backend sim
  skewproof matrix --scenarios rolling-upgrade --pairs v1.35.4..v1.36.3,v1.36.3..v1.37.1 --subjects reference,none`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkParallel(f.parallel); err != nil {
				return err
			}
			f.commandLine = "skewproof matrix" + given(cmd.Flags())
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	var pairs []string
	for _, p := range matrixPairs {
		pairs = append(pairs, p.From+".."+p.To)
	}
	flags := cmd.Flags()
	flags.StringVar(&f.backend, "backend", backendLocal, "what the servers run on, as in 'skewproof run'")
	flags.StringSliceVar(&f.names, "scenarios", matrixScenarios, "scenarios, separated by commas")
	flags.StringSliceVar(&f.subjects, "subjects", scenario.Subjects, "subjects, separated by commas")
	flags.StringSliceVar(&f.pairs, "pairs", pairs, "pairs of versions as FROM..TO, separated by commas")
	flags.Float64Var(&f.qps, "qps", 240, "requests per second, over all servers")
	registerParallel(flags, &f.parallel)
	flags.StringVar(&f.out, "out", "", "directory for the tables and all runs (default _out/matrix-BACKEND-TIME)")
	return cmd
}

// planned is a cell that has not been run yet.
type planned struct {
	reports.MatrixCell
	words []string
	limit time.Duration
	run   *conformance.Queued // nil for what cannot be run
}

func (f *matrixFlags) run(ctx context.Context, out, progress io.Writer) error {
	pairs, err := f.versionPairs()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	cells, err := f.plan(pairs)
	if err != nil {
		return err
	}
	var self string
	if self, f.out, err = prepareMany(f.out, "matrix", f.backend); err != nil {
		return err
	}
	run := runFlags{backend: f.backend, etcd: binaries.DefaultEtcd, overrides: binaries.Overrides{}}
	if err := run.fetch(ctx, versionsOf(cells, pairs), progress); err != nil {
		return err
	}
	warnCrowded(progress, f.parallel, f.backend, f.subjects...)
	began := time.Now()
	queue := conformance.NewQueue(ctx, conformance.Program{Path: self}, f.parallel)
	defer queue.Close()
	for i := range cells {
		cells[i].add(queue, f.out)
	}
	complete := true
	var done []reports.MatrixCell
	for i, c := range cells {
		cell, begun := c.wait(ctx)
		if begun {
			fmt.Fprintf(progress, "%d of %d: %s, %s, %s: %s, %.0f s\n", i+1, len(cells), pairs[cell.Pair], cell.Scenario, cell.Subject, cell.Core.Result, float64(cell.DurationSeconds))
		}
		complete = complete && begun
		done = append(done, cell)
	}
	m := reports.NewMatrix(reports.MatrixMetadata{
		StartedAt: began.UTC(), DurationSeconds: reports.SecondsOf(time.Since(began)), SkewproofVersion: version(), Backend: f.backend,
		Complete: complete && ctx.Err() == nil,
	}, pairs, done)
	m.Reproduce, m.Environment = f.commandLine, environment()
	if err := reports.SaveMatrix(f.out, m); err != nil { // what was run for an hour is shown all the same
		return notRun(errors.Join(reports.WriteMatrixText(out, m, reports.SummaryOptions{Color: isTerminal(out)}), err))
	}
	return tellMatrix(m, f.out, out)
}

// tellMatrix prints a matrix, where to read on, and turns its result into an exit code.
func tellMatrix(m reports.VersionMatrix, dir string, out io.Writer) error {
	if err := reports.WriteMatrixText(out, m, reports.SummaryOptions{Color: isTerminal(out)}); err != nil {
		return notRun(err)
	}
	fmt.Fprintf(out, "\n%s\n%s\n", filepath.Join(dir, reports.MatrixHTML), filepath.Join(dir, reports.MatrixJSON))
	return resultError(m.Result)
}

// versionPairs reads the pairs that were asked for. Known ones keep their note.
func (f *matrixFlags) versionPairs() ([]reports.VersionPair, error) {
	var pairs []reports.VersionPair
	for _, word := range f.pairs {
		from, to, ok := strings.Cut(word, "..")
		if !ok {
			return nil, fmt.Errorf("--pairs %q: write FROM..TO, such as v1.36.3..v1.37.1", word)
		}
		pair := reports.VersionPair{From: from, To: to}
		if i := slices.IndexFunc(matrixPairs, func(known reports.VersionPair) bool { return known.From == from && known.To == to }); i >= 0 {
			pair = matrixPairs[i]
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// plan checks every run before the first one starts. What a subject or version cannot do is a cell that says so; everything else that is wrong
// is wrong usage.
func (f *matrixFlags) plan(pairs []reports.VersionPair) ([]planned, error) {
	for flag, words := range map[string][]string{"pairs": f.pairs, "scenarios": f.names, "subjects": f.subjects} {
		for n, word := range words {
			if slices.Contains(words[:n], word) {
				return nil, usage("--%s names %s twice", flag, word)
			}
		}
	}
	var cells []planned
	for n, pair := range pairs {
		for _, name := range f.names {
			chosen, err := scenarios.Find(name)
			if err != nil {
				return nil, &exitError{exitUsage, err}
			}
			for _, subject := range f.subjects {
				cell := planned{MatrixCell: reports.MatrixCell{Pair: n, Scenario: name, Subject: subject}}
				cell.MustFail = subject == scenario.SubjectNone && chosen.Control.Subject == subject
				run := runFlags{
					backend: f.backend, subject: subject, from: pair.From, to: pair.To, etcd: binaries.DefaultEtcd, servers: conformance.DefaultServers,
					qps: f.qps, seed: 1, overrides: binaries.Overrides{},
				}
				if !slices.Contains(simulatedSubjects, subject) {
					return nil, usage("--subjects %q: there are %s", subject, strings.Join(simulatedSubjects, ", "))
				}
				_, plan, err := run.plan(name)
				if err != nil {
					cell.Trouble = err.Error()
				}
				cell.words = []string{name, "--backend", f.backend, "--subject", subject, "--from", pair.From, "--to", pair.To, "--qps", fmt.Sprint(f.qps)}
				cell.limit = conformance.Patience(plan)
				cells = append(cells, cell)
			}
		}
	}
	if len(cells) == 0 || !slices.ContainsFunc(cells, func(c planned) bool { return c.Trouble == "" }) {
		return nil, usage("nothing of this matrix can be run: %s", firstTrouble(cells))
	}
	return cells, nil
}

// versionsOf are the versions that the runs need, some of them several times. A pair of which nothing can be run needs none.
func versionsOf(cells []planned, pairs []reports.VersionPair) []string {
	var versions []string
	for _, c := range cells {
		if c.Trouble == "" {
			versions = append(versions, pairs[c.Pair].From, pairs[c.Pair].To)
		}
	}
	return versions
}

func firstTrouble(cells []planned) string {
	if len(cells) == 0 {
		return "no pair, scenario or subject is named"
	}
	return cells[0].Trouble
}

// add queues the run of a cell.
func (c *planned) add(queue *conformance.Queue, out string) {
	if c.Trouble == "" {
		c.Directory = fmt.Sprintf("%d-%s-%s", c.Pair+1, c.Scenario, c.Subject)
		c.run = queue.Add(c.limit, filepath.Join(out, c.Directory), c.words...)
	}
}

// wait waits for the run of a cell and says what it came to, and whether it had begun.
func (c *planned) wait(ctx context.Context) (cell reports.MatrixCell, begun bool) {
	cell = c.MatrixCell
	if c.run == nil {
		cell.Core = reports.ProfileResult{Result: reports.ResultSkipped, Reason: cell.Trouble}
		cell.Extended, cell.Trouble = cell.Core, ""
		return cell, true
	}
	f, begun := c.run.Wait(ctx)
	if !begun {
		cell.Core = reports.ProfileResult{Result: reports.ResultSkipped, Reason: "not run: the matrix was ended before its turn came"}
		cell.Extended, cell.Directory = cell.Core, ""
		return cell, false
	}
	cell.DurationSeconds = reports.SecondsOf(f.Took)
	if f.Report != nil {
		cell.SetVerdicts(*f.Report)
	}
	if f.Problem != "" {
		if cell.Trouble == "" {
			cell.Trouble = f.Problem
		}
		if f.Report == nil || f.Report.Verdict.Outcome != invariant.OutcomeFail {
			cell.Core = reports.ProfileResult{Result: reports.ResultInconclusive, Reason: cell.Trouble}
			cell.Extended = cell.Core
		}
	}
	return cell, begun
}
