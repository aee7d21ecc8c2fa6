package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/cluster/kind"
	"github.com/skewproof/skewproof/internal/cluster/local"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/replay"
	"github.com/skewproof/skewproof/sim/search"
)

// replayFlags are the flags of 'skewproof replay'. The file fills in the rest of the Spec.
type replayFlags struct {
	spec    run.Spec
	backend string
	out     string
	given   func(name string) bool
	file    string
	trace   string
	lenient bool
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Run a schedule again that broke an invariant: in the simulator, or on real kube-apiservers",
		Long: `Run a schedule again that broke an invariant, from the file that 'skewproof explore' or 'skewproof exhaust' wrote.

In the simulator it is the same run, byte for byte: the hash of the trace is compared. If code or policy have changed since, the output
says so, and whether the invariant is still violated.

On the backends local and kind the same steps are carried out on real kube-apiservers of the file's versions: waits take real time (2 s to
1 min), the load of 'skewproof run' takes the place of the file's requests, and at the end everything is healed. Steps that real processes
cannot carry out are named, and the file is refused; with --lenient they are left out. A file from 'skewproof explore --backend local' has
exactly the steps and waits that were carried out.

Exit code 1: the violation was seen (again); 0: it was not; 2: it could not be judged.`,
		Example: `  skewproof replay _out/explore/NoFalseNotFound-1.json
  skewproof replay NoFalseNotFound-1.json --backend local --out _out/real`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.file, f.given = args[0], cmd.Flags().Changed
			if f.backend != backendSim {
				if err := checkGiven(cmd.Flags(), f.spec); err != nil {
					return err
				}
			}
			return f.replay(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.backend, "backend", backendSim, "what the schedule is run on: sim, local or kind")
	flags.StringVar(&f.out, "out", "",
		"directory for history and reports (without it none are written in sim, and on local _out/replay-SUBJECT-TIME is used)")
	flags.StringVar(&f.trace, "trace", "", "write the trace to this file (sim only)")
	flags.BoolVar(&f.lenient, "lenient", false,
		"leave out steps that real processes cannot carry out, rather than refuse the file (local and kind only)")
	registerReal(flags, &f.spec, backendLocal)
	registerOwn(flags, &f.spec, "local and kind only")
	return cmd
}

func (f *replayFlags) replay(ctx context.Context, out, progress io.Writer) error {
	foreign := map[string][]string{
		backendSim: {"lenient", "qps", "etcd", "binary", "label", "kube-apiserver-flag", "runtime-config"}, backendLocal: {"trace"},
		scenario.BackendKind: {"trace", "etcd", "binary"},
	}
	if _, ok := foreign[f.backend]; !ok {
		return usage("--backend %q: want %s, %s or %s", f.backend, backendSim, backendLocal, scenario.BackendKind)
	}
	for _, name := range foreign[f.backend] {
		if f.given(name) {
			return usage("--%s means nothing with --backend %s", name, f.backend)
		}
	}
	r, err := search.ReadRepro(f.file)
	if err != nil {
		return notRun(err)
	}
	if f.backend != backendSim {
		return f.replayReal(ctx, r, out, progress)
	}
	return f.replaySimulated(r, out)
}

// replaySimulated runs the file in the simulator and prints what happened.
func (f *replayFlags) replaySimulated(r *search.Repro, out io.Writer) error {
	result, verdicts, err := r.Replay(f.trace != "")
	if err != nil {
		return notRun(err)
	}
	v := replay.VerdictOn(verdicts, r)
	replay.WriteStory(out, r, result.History, v)
	fmt.Fprintf(out, "\n%s\n%s\n%s\n", replay.Recognise(r, v), r.Removal, replay.CompareTraces(r, result.Hash, run.Version()))
	if f.trace != "" {
		if err := writeTrace(f.trace, result); err != nil {
			return notRun(err)
		}
		fmt.Fprintf(out, "The trace is in %s.\n", f.trace)
	}
	if f.out != "" {
		if err := f.save(r, result, out); err != nil {
			return err
		}
	}
	return verdictError(v.Outcome, nil)
}

// save writes history and reports.
func (f *replayFlags) save(r *search.Repro, result *sim.Result, out io.Writer) error {
	dir, err := run.NewDir(f.out, "replay-"+r.Spec.Policy)
	if err != nil {
		return err
	}
	defer dir.Tidy()
	result.History.Run.Reproduce = shell.Line("skewproof", "replay", f.file)
	result.History.Run.Environment = []string{run.Simulated}
	if err := dir.SaveHistory(result.History); err != nil {
		return notRun(err)
	}
	if _, err := dir.Judge(run.Judging{}, run.Console{Out: io.Discard}); err != nil {
		return err
	}
	fmt.Fprintf(out, "History and reports are in %s.\n", dir)
	return nil
}

// writeTrace writes the trace to a file. If the file is incomplete and regular, writeTrace removes
// it.
func writeTrace(path string, result *sim.Result) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err == nil {
			return
		}
		err = fmt.Errorf("write the trace: %w; free some space, or choose another file with --trace", err)
		if info, statErr := os.Lstat(path); statErr == nil && info.Mode().IsRegular() {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	return result.WriteTrace(file)
}

// replayReal carries out the steps of the file on real kube-apiservers, and says whether the same
// invariant is violated in the same way.
func (f *replayFlags) replayReal(ctx context.Context, r *search.Repro, out, progress io.Writer) error {
	plan, err := f.realPlan(r)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	for _, s := range plan.Refused {
		fmt.Fprintln(out, "Left out:", s)
	}
	for _, s := range plan.Changed {
		fmt.Fprintln(out, "Changed:", s)
	}
	f.spec.Own = &run.Own{
		Name: "replay",
		Happens: fmt.Sprintf("The schedule that broke %s (policy %s, seed %d) is carried out on real processes.",
			r.Invariant, r.Spec.Policy, r.Seed),
		About: []string{r.Invariant}, Plan: plan.Plan, Command: f.words(),
	}
	result, ran := f.spec.Run(ctx, run.Console{Out: out, Progress: progress, Color: isTerminal(out)})
	if result.Dir == "" || ran != nil && ctx.Err() != nil {
		return ran
	}
	h, err := history.ReadFile(result.Dir.History())
	if err != nil {
		return errors.Join(ran, notRun(err))
	}
	outcome := replay.JudgeReal(out, r, h)
	if outcome != invariant.OutcomeFail && ran != nil {
		return ran
	}
	return verdictError(outcome, nil)
}

// realPlan makes the plan, fills in the values that the file decides, and checks everything else.
func (f *replayFlags) realPlan(r *search.Repro) (*replay.Plan, error) {
	room := local.MaxServers
	if f.backend == scenario.BackendKind {
		room = kind.MaxServers
	}
	plan, err := replay.NewPlan(r, replay.Options{File: f.file, MaxServers: room, Lenient: f.lenient, Preset: sim.PresetOf})
	if err != nil {
		return nil, err
	}
	f.spec.Backend, f.spec.Out, f.spec.Subject, f.spec.From, f.spec.To = f.backend, f.out, plan.Subject, r.Spec.From, r.Spec.To
	f.spec.Servers, f.spec.Seed = len(plan.Servers), &r.Seed
	if r.Found != nil && f.spec.QPS == 0 {
		f.spec.QPS = r.Found.QPS
	}
	checked := f.spec
	checked.Own = &run.Own{Name: "replay of " + f.file, Plan: plan.Plan}
	_, err = checked.Plan()
	return plan, err
}

// words are the command that makes the plan. The flags of the Spec are added to it.
func (f *replayFlags) words() []string {
	words := []string{"replay", f.file}
	if f.lenient {
		words = append(words, "--lenient")
	}
	return words
}
