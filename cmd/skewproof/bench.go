package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios/conformance"
)

// benchFlags are the flags of 'skewproof bench': those of every run, and these.
type benchFlags struct {
	runFlags
	labels         string
	runs, parallel int
}

// newBench repeats scenarios: how long they take, and whether they come to the same verdicts every time.
func newBench() *cobra.Command {
	f := benchFlags{runFlags: runFlags{overrides: binaries.Overrides{}}}
	cmd := &cobra.Command{
		Use:   "bench [NAME…]",
		Short: "Repeat scenarios: how long they take, and whether their verdicts differ from run to run",
		Long: `Repeat scenarios, the first of all of them before the second of any, and show how long they take and what each invariant came to, run by run.
Every run is a process of its own and leaves its own report.

Exit code 0: all runs of each scenario came to the same verdicts, whatever these are; 2: some verdict differed, or nothing ran twice, so that
nothing could be compared; 3: a run could not be carried out, or Ctrl-C: what was done until then is shown.`,
		Example: `  skewproof bench rolling-upgrade --runs 10
  skewproof bench --labels smoke --subject reference --runs 10 --parallel 2`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := checkParallel(f.parallel); err != nil {
				return err
			}
			f.given = cmd.Flags().Changed
			return f.bench(cmd.Context(), names, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().Lookup("out").Usage = "directory for all runs (default _out/bench-BACKEND-SUBJECT-TIME)"
	cmd.Flags().StringVar(&f.labels, "labels", "", "which scenarios, by labels, as in 'skewproof conformance'")
	cmd.Flags().IntVar(&f.runs, "runs", 5, "how many times")
	registerParallel(cmd.Flags(), &f.parallel)
	return cmd
}

// benched is a scenario that is repeated.
type benched struct {
	name    string
	words   []string // that run it
	limit   time.Duration
	queued  []*conformance.Queued // its runs, in order
	dirs    []string
	samples []sample
}

// sample is what one repetition came to.
type sample struct {
	wall, ready time.Duration
	operations  int
	verdicts    []reports.Invariant
}

func (f *benchFlags) bench(ctx context.Context, names []string, out, progress io.Writer) error {
	all, versions, err := f.choose(names)
	if err != nil {
		return err
	}
	var self string
	if self, f.out, err = prepareMany(f.out, "bench", f.backend, f.subject); err != nil {
		return err
	}
	if err := f.fetch(ctx, versions, progress); err != nil {
		return err
	}
	warnCrowded(progress, f.parallel, f.backend, f.subject)
	queue := conformance.NewQueue(ctx, conformance.Program{Path: self}, f.parallel)
	defer queue.Close()
	for i := range f.runs {
		for _, b := range all {
			dir := filepath.Join(f.out, fmt.Sprintf("%02d", i+1), b.name)
			b.dirs = append(b.dirs, dir)
			b.queued = append(b.queued, queue.Add(b.limit, dir, b.words...))
		}
	}
	trouble := f.collect(ctx, all, progress)
	err = summarize(out, all) // what was done is shown all the same
	if trouble != nil {
		return notRun(trouble)
	}
	return err
}

// collect waits for the runs, in order, until one could not be carried out to its end.
func (f *benchFlags) collect(ctx context.Context, all []*benched, progress io.Writer) error {
	for i := range f.runs {
		for _, b := range all {
			finished, begun := b.queued[i].Wait(ctx)
			if !begun { // then it has said nothing, anywhere
				return fmt.Errorf("run %d of %s: %s", i+1, b.name, finished.Problem)
			}
			if finished.Problem != "" {
				return fmt.Errorf("run %d of %s: %s; what it said is in %s.log", i+1, b.name, finished.Problem, b.dirs[i])
			}
			s, err := readSample(b.dirs[i], finished)
			if err != nil {
				return err
			}
			b.samples = append(b.samples, s)
			fmt.Fprintf(progress, "run %d of %d: %s: %.1f s, servers ready after %.1f s, %d requests\n", i+1, f.runs, b.name, s.wall.Seconds(), s.ready.Seconds(), s.operations)
		}
	}
	return nil
}

// choose returns the scenarios that are named, or that have the labels, and the versions that they need. Everything is checked before anything is run.
func (f *benchFlags) choose(names []string) (all []*benched, versions []string, err error) {
	switch {
	case f.runs < 1:
		return nil, nil, usage("--runs %d: want at least 1", f.runs)
	case len(names) > 0 && f.labels != "":
		return nil, nil, usage("names and --labels: give one of them")
	case len(names) == 0 && f.labels == "":
		return nil, nil, usage("which scenarios? Give their names, or --labels; 'skewproof list' shows them")
	case f.labels != "":
		chosen, err := conformance.Choose(f.labels)
		if err != nil {
			return nil, nil, &exitError{exitUsage, err}
		}
		for _, s := range chosen {
			if s.Limits.Allows(f.backend) {
				names = append(names, s.Name)
			}
		}
		if len(names) == 0 {
			return nil, nil, usage("--labels %q choose nothing that runs on %s", f.labels, f.backend)
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, nil, usage("%s is named twice: --runs says how many times", name)
		}
		one := f.runFlags // each may need other servers than the next
		_, plan, err := one.plan(name)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, &benched{name: name, words: one.words(name), limit: conformance.Patience(plan)})
		versions = append(versions, plan.Versions()...)
	}
	return all, versions, nil
}

func readSample(dir string, finished conformance.Finished) (sample, error) {
	h, err := history.ReadFile(runDir(dir).history())
	if err != nil {
		return sample{}, err
	}
	s := sample{wall: finished.Took, operations: finished.Report.Metadata.Operations, verdicts: finished.Report.Invariants}
	for _, l := range h.Lifecycle {
		if l.Incarnation == 1 && l.State == history.StateReady {
			s.ready = max(s.ready, l.At)
		}
	}
	return s, nil
}
