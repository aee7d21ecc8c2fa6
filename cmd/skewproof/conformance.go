package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

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

If a control run does not fail as it must, the harness is blind, and the result is inconclusive. An inconclusive scenario never counts as passed.

Labels are those of 'skewproof list --json', families and names, in Ginkgo's language: 'smoke', 'upgrades || network', 'conformance && !slow'.`,
		Example: `  skewproof conformance --labels smoke
  skewproof conformance --subject reference --from v1.35.4 --to v1.36.3
  skewproof conformance --backend sim --subject reference            # minutes
  skewproof conformance --backend existing --kubeconfig FILE --product 'Example Proxy' --product-version v2.1`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Reproduce = "skewproof conformance" + given(cmd.Flags())
			return conform(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().StringVar(&o.Labels, "labels", "", "which scenarios, by labels")
	return cmd
}

// conform runs the suite. Ctrl-C ends the run that is under way, and the reports are still written.
func conform(ctx context.Context, o conformance.Options, out io.Writer) error {
	if err := o.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	if err := plausible(o); err != nil {
		return err
	}
	var err error
	if o.Program, err = os.Executable(); err != nil {
		return notRun(err)
	}
	if o.Out == "" {
		o.Out = filepath.Join("_out", strings.Join([]string{"conformance", o.Backend, o.Tested(), time.Now().Format("20060102-150405")}, "-"))
	}
	if o.Out, err = freshDir(o.Out); err != nil {
		return err
	}
	o.Version, o.Environment = version(), environment()
	report, err := conformance.Run(ctx, o, isTerminal(out), ownSignals(ctx))
	if report.Kind == "" {
		return notRun(err)
	}
	fmt.Fprintln(out)
	shown := reports.SummaryOptions{Dir: o.Out, Color: isTerminal(out)}
	if err != nil {
		shown.Dir = "" // there is nothing there to read on
	}
	if err := reports.WriteConformanceSummary(out, report, shown); err != nil {
		return notRun(err)
	}
	if err != nil {
		return notRun(fmt.Errorf("the report above could not be saved: %w", err))
	}
	return resultError(report.Result)
}

// plausible lets what is wrong with versions, backend or subject show at once, as wrong usage, instead of in every single run.
func plausible(o conformance.Options) error {
	if o.Backend == backendExisting {
		if _, err := existing.Ways(o.Kubeconfig, o.Contexts, o.DirectContexts); err != nil {
			return &exitError{exitUsage, err}
		}
		return nil
	}
	f := runFlags{overrides: binaries.Overrides{}}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(flags)
	words := o.Words("quiet")
	if err := flags.Parse(words[1:]); err != nil {
		return &exitError{exitUsage, err}
	}
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

// freshDir makes a directory for many runs, or checks that it is empty, and returns its absolute path.
func freshDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", notRun(fmt.Errorf("output directory %s: %w", dir, err))
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return "", notRun(fmt.Errorf("create output directory %s: %w; choose another with --out", dir, err))
	}
	entries, err := os.ReadDir(absolute)
	if err != nil {
		return "", notRun(fmt.Errorf("output directory %s: %w", dir, err))
	}
	if len(entries) > 0 {
		return "", usage("output directory %s is not empty: it would mix two reports; choose another with --out, or remove it", dir)
	}
	return absolute, nil
}

// given are the flags of the command line again, but for where the output goes.
func given(flags *pflag.FlagSet) string {
	var words strings.Builder
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "out" {
			return
		}
		value := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		fmt.Fprintf(&words, " --%s=%s", f.Name, conformance.Quoted(value))
	})
	return words.String()
}
