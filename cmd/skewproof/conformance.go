package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/existing"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios/conformance"
)

func newConformance() *cobra.Command {
	var o conformance.Options
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Run the conformance suite: many scenarios, each with its negative control, and one report",
		Long: `Run the conformance suite on one Mixed Version Proxy and one pair of versions: the scenarios that --labels chooses (all, unless it is given),
and each once more on something on which it must fail. It leaves conformance.yaml, junit.xml and the directory of every run.

Runs are carried out one after the other, or N at a time with --parallel N, where the machine has a processor and 2 GB of memory for each.

If a control run does not fail as it must, the harness is blind, and the result is inconclusive. An inconclusive scenario never counts as passed.

Labels are those of 'skewproof list --json', families and names, in Ginkgo's language: 'smoke', 'upgrades || network', 'conformance && !slow'.`,
		Example: `  skewproof conformance --labels smoke
  skewproof conformance --subject reference --from v1.35.4 --to v1.36.3 --parallel 2
  skewproof conformance --backend sim --subject reference            # minutes
  skewproof conformance --backend existing --kubeconfig FILE --product 'Example Proxy' --product-version v2.1`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkParallel(o.Parallel); err != nil {
				return err
			}
			o.Reproduce = "skewproof conformance" + given(cmd.Flags())
			return conform(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().StringVar(&o.Labels, "labels", "", "which scenarios, by labels")
	registerParallel(cmd.Flags(), &o.Parallel)
	return cmd
}

// conform runs the suite. Ctrl-C ends what is under way, and the reports are still written.
func conform(ctx context.Context, o conformance.Options, out, progress io.Writer) error {
	if err := o.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	if err := plausible(o); err != nil {
		return err
	}
	var err error
	if o.Program, o.Out, err = prepareMany(o.Out, "conformance", o.Backend, o.Tested()); err != nil {
		return err
	}
	o.Version, o.Environment = version(), environment()
	warnCrowded(progress, o.Parallel, o.Backend, o.Tested())
	fmt.Fprintln(out, o.Expected())
	report, err := conformance.Run(ctx, o, isTerminal(out), ownSignals(ctx))
	if report.Kind == "" {
		return notRun(err)
	}
	fmt.Fprintln(out)
	err = tell(out, o.Out, err, func(shown reports.SummaryOptions) error { return reports.WriteConformanceSummary(out, report, shown) })
	if err != nil {
		return err
	}
	return resultError(report.Result)
}

// plausible lets what is wrong with versions, backend or subject show at once, as wrong usage, instead of in every single run.
func plausible(o conformance.Options) error {
	if o.Backend == backendExisting {
		if _, err := existing.Endpoints(o.Kubeconfig, o.Contexts, o.DirectContexts); err != nil {
			return unreadable(err)
		}
		return nil
	}
	f := runFlags{overrides: binaries.Overrides{}, existing: existingFlags{possible: true}}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(flags)
	words := o.Words("quiet")
	if err := flags.Parse(words[1:]); err != nil {
		return &exitError{exitUsage, err}
	}
	f.given = flags.Changed
	_, _, err := f.plan(words[0])
	return err
}

// resultError turns a result into an exit code.
func resultError(r reports.Result) error {
	switch r {
	case reports.ResultPassed:
		return nil
	case reports.ResultFailed:
		return &exitError{code: exitFail}
	default:
		return &exitError{code: exitInconclusive}
	}
}
