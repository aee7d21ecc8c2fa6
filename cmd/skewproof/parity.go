package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/parity"
)

// parityFlags are the flags of 'skewproof parity'.
type parityFlags struct {
	runFlags
	subjects []string
	local    string
	causes   bool
}

func newParity() *cobra.Command {
	f := parityFlags{runFlags: runFlags{overrides: binaries.Overrides{}}}
	cmd := &cobra.Command{
		Use:   "parity [NAME…]",
		Short: "Carry out scenarios on real processes and in the simulator, and compare the verdicts",
		Long: `Carry out scenarios (all, unless some are named) on real processes and in the simulator, by the same plans, and compare the verdicts,
invariant by invariant. Disagreements are listed with the reason where it is known (sim/parity/known.json).

With --local real runs that are there already are not repeated. Those of the scenarios that are not there are carried out.

Exit code 0: every verdict agrees, or the disagreement is known; 1: one is not; 3: a run could not be carried out.`,
		Example: `  skewproof parity peer-crash --subject builtin,reference
  skewproof parity --local _out/parity-20261121-101500    # real runs that are there already are not repeated`,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.given = cmd.Flags().Changed
			return f.compare(cmd.Context(), names, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.registerPlan(flags)
	flags.StringSliceVar(&f.subjects, "subject", scenario.Subjects, "whose Mixed Version Proxy is tested; several are separated by commas")
	flags.Lookup("out").Usage = "directory for all runs (default _out/parity-TIME)"
	flags.StringVar(&f.local, "local", "", "take from this directory the real runs that an earlier 'skewproof parity --out' left there; the others are carried out")
	flags.BoolVar(&f.causes, "causes", false, "list also the kinds of violations that only one of the backends shows")
	return cmd
}

// pair is one plan carried out by both backends.
type pair struct {
	scenario, subject string
	local, sim        reports.RunReport
	disagreements     []parity.Disagreement
}

func (f *parityFlags) compare(ctx context.Context, names []string, out, progress io.Writer) error {
	pairs, err := f.pairs(names)
	if err != nil {
		return err
	}
	if f.local != "" {
		if _, err := os.ReadDir(f.local); err != nil { // a slip of the pen must not cost half an hour of real runs
			return notRun(fmt.Errorf("take runs from --local %s: %w", f.local, err))
		}
		if !slices.ContainsFunc(pairs, func(p *pair) bool { return isThere(f.local, p.name(backendLocal)) }) {
			return notRun(fmt.Errorf("take runs from --local %s: none of those that are to be compared is there, such as %s; without --local they are carried out",
				f.local, pairs[0].name(backendLocal)))
		}
	}
	base := f.out
	if base == "" {
		base = filepath.Join("_out", "parity-"+time.Now().Format("20060102-150405"))
	}
	if base, err = freshDir(base, "reports"); err != nil {
		return err
	}
	defer func() { _ = os.Remove(base) }() // it stays unless nothing was run
	for i, p := range pairs {
		if err := f.both(ctx, base, p); err != nil {
			if i > 0 {
				_ = f.tell(out, pairs[:i]) // what was compared is not lost; the error is what counts
				fmt.Fprintf(out, "%d of %d were compared.\n", i, len(pairs))
			}
			return err
		}
		fmt.Fprintf(progress, "%d of %d: %s, %s: %s verdicts agree\n", i+1, len(pairs), p.scenario, p.subject, p.agreement())
	}
	return f.tell(out, pairs)
}

// pairs are what is to be compared. What is wrong with the last of them must not show after half an hour.
func (f *parityFlags) pairs(names []string) ([]*pair, error) {
	if len(names) == 0 {
		for _, s := range scenarios.All() {
			if s.Limits.Allows(backendLocal) && s.Limits.Allows(backendSim) {
				names = append(names, s.Name)
			}
		}
	}
	if len(f.subjects) == 0 {
		return nil, usage("--subject names none: there are %s", strings.Join(scenario.Subjects, ", "))
	}
	var pairs []*pair
	for _, name := range names {
		for _, subject := range f.subjects {
			if slices.ContainsFunc(pairs, func(p *pair) bool { return p.scenario == name && p.subject == subject }) {
				return nil, usage("%s on %s is named twice", name, subject)
			}
			for _, backend := range []string{backendLocal, backendSim} {
				run := f.on(backend, subject)
				if _, _, err := run.plan(name); err != nil {
					return nil, err
				}
			}
			pairs = append(pairs, &pair{scenario: name, subject: subject})
		}
	}
	return pairs, nil
}

// on are the flags of one run. What one scenario needs, such as more servers, must not stick to the next.
func (f *parityFlags) on(backend, subject string) runFlags {
	run := f.runFlags
	run.backend, run.subject = backend, subject
	return run
}

// both carries out one plan on both backends, unless the real run is there already.
func (f *parityFlags) both(ctx context.Context, base string, p *pair) (err error) {
	p.local, err = readReal(f.local, p.name(backendLocal))
	if errors.Is(err, fs.ErrNotExist) {
		p.local, err = f.one(ctx, p, backendLocal, filepath.Join(base, p.name(backendLocal)))
	}
	if err != nil {
		return err
	}
	if p.sim, err = f.one(ctx, p, backendSim, filepath.Join(base, p.name(backendSim))); err != nil {
		return err
	}
	if p.disagreements, err = parity.Compare(p.local, p.sim); err != nil {
		return notRun(err)
	}
	return nil
}

// name is that of the directory of a run.
func (p *pair) name(backend string) string { return p.scenario + "-" + p.subject + "-" + backend }

// isThere tells whether an earlier run is in dir.
func isThere(dir, name string) bool {
	_, err := os.Stat(runDir(filepath.Join(dir, name)).file(reports.JSONFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// readReal reads the report of an earlier run. Its history is judged anew, since invariants may have changed.
func readReal(dir, name string) (reports.RunReport, error) {
	if dir == "" {
		return reports.RunReport{}, fs.ErrNotExist
	}
	d := runDir(filepath.Join(dir, name))
	if _, err := reports.Read(d.file(reports.JSONFile)); err != nil {
		return reports.RunReport{}, err
	}
	if err := judgeRun(d, false, io.Discard); isNotRun(err) {
		return reports.RunReport{}, err
	}
	return reports.Read(d.file(reports.JSONFile))
}

// one carries out a plan on one backend.
func (f *parityFlags) one(ctx context.Context, p *pair, backend, dir string) (reports.RunReport, error) {
	run := f.on(backend, p.subject)
	run.out = dir
	err := run.run(ctx, p.scenario, io.Discard, io.Discard)
	report, readErr := reports.Read(filepath.Join(dir, reports.JSONFile))
	if isNotRun(err) && (readErr != nil || ctx.Err() != nil) { // one that a server's crash cut short has a report, and counts
		return report, fmt.Errorf("%s, %s, on %s: %w", p.scenario, p.subject, backend, err)
	}
	return report, readErr
}

// isNotRun tells what kept a run from being judged from what it came to.
func isNotRun(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && exit.code > exitInconclusive
}
