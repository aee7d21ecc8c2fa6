package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/sim/search"
)

// replayFlags are the flags of 'skewproof replay'. What the file decides is filled into the Spec from it.
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

In the simulator it is the same run, byte for byte: the trace is compared by its hash. Where code or policy have changed since, that is
said, and whether the invariant is still violated.

On the backend local the same steps are carried out on real kube-apiservers of the file's versions: waits take real time (2 s to 1 min),
the load of 'skewproof run' takes the place of the file's requests, and at the end everything is healed. What real processes cannot be made
to do is named and refused; with --lenient it is left out.

Exit code 1: the violation was seen (again); 0: it was not; 2: it could not be judged.`,
		Example: `  skewproof replay _out/explore/NoFalseNotFound-1.json
  skewproof replay NoFalseNotFound-1.json --backend local --out _out/real`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.file, f.given = args[0], cmd.Flags().Changed
			if f.backend == backendLocal {
				if err := checkGiven(cmd.Flags(), f.spec); err != nil {
					return err
				}
			}
			return f.replay(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.backend, "backend", backendSim, "what the schedule is run on: sim or local")
	flags.StringVar(&f.out, "out", "", "directory for history and reports (without it none are written in sim, and on local _out/replay-SUBJECT-TIME is used)")
	flags.StringVar(&f.trace, "trace", "", "write the trace to this file (sim only)")
	flags.BoolVar(&f.lenient, "lenient", false, "leave out what real processes cannot be made to do, rather than refuse the file (local only)")
	registerReal(flags, &f.spec, backendLocal)
	return cmd
}

func (f *replayFlags) replay(ctx context.Context, out, progress io.Writer) error {
	foreign := map[string][]string{backendSim: {"lenient", "qps", "etcd", "binary"}, backendLocal: {"trace"}}
	if _, ok := foreign[f.backend]; !ok {
		return usage("--backend %q: want %s or %s", f.backend, backendSim, backendLocal)
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
	if f.backend == backendLocal {
		return f.replayReal(ctx, r, out, progress)
	}
	return f.replaySimulated(r, out)
}

func verdictOn(verdicts []invariant.Verdict, name string) invariant.Verdict {
	for _, v := range verdicts {
		if v.Invariant == name {
			return v
		}
	}
	return invariant.Verdict{Invariant: name, Outcome: invariant.OutcomeInconclusive, Reason: "this skewproof has no invariant of that name"}
}

// judged says what became of the violation of the file.
func judged(r *search.Repro, v invariant.Verdict) string {
	switch {
	case v.Outcome == invariant.OutcomeFail && sameWay(r, v):
		return fmt.Sprintf("%s is violated, in the same way as in the file: %s.", r.Invariant, r.Cause)
	case v.Outcome == invariant.OutcomeFail:
		var ways []string
		for _, e := range v.Evidence {
			ways = append(ways, e.Cause)
		}
		return fmt.Sprintf("%s is violated, but in another way (%s) than in the file (%s).", r.Invariant, strings.Join(ways, "; "), r.Cause)
	case v.Outcome == invariant.OutcomePass:
		return fmt.Sprintf("%s is not violated.", r.Invariant)
	default:
		return fmt.Sprintf("%s is not seen to be violated: %s.", r.Invariant, v.Reason)
	}
}

func sameWay(r *search.Repro, v invariant.Verdict) bool {
	for _, e := range v.Evidence {
		if e.Cause == r.Cause {
			return true
		}
	}
	return false
}
