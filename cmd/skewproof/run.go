package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/extension"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/suite"
)

// These are the backends that commands name.
const (
	backendLocal = scenario.BackendLocal
	backendSim   = scenario.BackendSim
)

func newRun() *cobra.Command {
	var s run.Spec
	var dryRun bool
	var at int
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Carry out a scenario, judge the recorded history, and leave a report",
		Long: `Carry out a scenario on a control plane of several versions, judge the recorded history, and leave a report.

On the backend local the control plane consists of real kube-apiservers in Linux namespaces of their own. They need no root and no Docker,
take no port of this machine, and cannot reach any network. Binaries that are not in the cache are downloaded, or built from the published
Go modules (about 3 minutes each on two CPUs, once). Before that, the run is simulated.

On the backend kind the control plane is a kind cluster whose control-plane nodes run different versions. It needs a Docker engine, and
node images from 'make kind-images'.

On the backend sim the real proxy code runs on a virtual clock and a simulated network, in seconds and without binaries. What each version
serves was recorded from real kube-apiservers. The same --seed gives the same run, to the byte.

On the backend existing a kubeconfig names servers that run already, with one context for each. skewproof only reads from them. It refuses
scenarios that change or harm a control plane, and does not judge invariants that need the servers' logs.`,
		Example: `  skewproof run rolling-upgrade
  skewproof run restart-during-partition --from v1.36.3 --to v1.37.1 --out _out/restart
  skewproof run rolling-upgrade --subject reference
  skewproof run rolling-upgrade --subject none     # the negative control: it must fail
  skewproof run rolling-upgrade --backend kind
  skewproof run peer-partition --backend sim --servers 20
  skewproof run quiet --backend existing --kubeconfig FILE --contexts cp-1,cp-2,cp-3
  skewproof run quiet --keep                       # look around with 'skewproof shell', act with 'skewproof step'
  skewproof run quiet --keep --no-load --at 0      # a cluster to try things on, at once; nothing is judged`,
		Args: func(cmd *cobra.Command, names []string) error {
			switch len(names) {
			case 0:
				return usage("name a scenario: 'skewproof list' shows them all; begin with 'skewproof run rolling-upgrade', or with " +
					"'skewproof run rolling-upgrade --backend sim', which takes seconds and no binaries")
			case 1:
				return nil
			}
			return usage("a run is of one scenario, not of %s; 'skewproof bench' and 'skewproof conformance --labels' take several",
				strings.Join(names, ", "))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Scenario = args[0]
			if cmd.Flags().Changed("at") {
				s.At = &at
			}
			if err := checkGiven(cmd.Flags(), s); err != nil {
				return err
			}
			plan, err := s.Plan()
			if err != nil {
				return err
			}
			if dryRun {
				return plan.DryRun(cmd.Context(), cmd.OutOrStdout())
			}
			if err := plan.Preview(cmd.Context(), console(cmd)); err != nil {
				return err
			}
			return carryOut(cmd, s)
		},
	}
	flags := cmd.Flags()
	registerRun(flags, &s)
	suite.RegisterExisting(flags, &s)
	flags.Lookup("qps").Usage += fmt.Sprintf("; with --backend existing %d unless it is given", run.GentleQPS)
	flags.DurationVar(&s.Soak, "soak", 0, "how much longer the load runs at the end of the scenario, while nothing is disturbed")
	flags.BoolVar(&s.Keep, "keep", false, "hold the cluster after the verdict, until Ctrl-C or SIGTERM")
	flags.BoolVar(&s.NoLoad, "no-load", false, "with --keep: send no load at all, and judge nothing")
	flags.IntVar(&at, "at", 0,
		"with --keep: hold the cluster after the step with this number in --dry-run, with its faults, "+
			"and judge nothing; 0: before the first step")
	flags.BoolVar(&s.OnlyReads, "only-reads", false, "leave out steps that change, configure or harm the servers, as --backend existing does")
	flags.BoolVar(&dryRun, "dry-run", false, "print the steps and every server's command line, and start nothing")
	return cmd
}

// carryOut carries out a run. The verdict becomes the exit code.
func carryOut(cmd *cobra.Command, s run.Spec) error {
	limitMemory()
	ctx := cmd.Context()
	if s.Keep {
		var cancel context.CancelFunc
		ctx, cancel = endOnIgnored(ctx, os.Interrupt)
		defer cancel()
	}
	result, err := s.Run(ctx, console(cmd))
	return judged(result.Standing, s.Known != "", err)
}

// newHidden returns the commands that people never call. skewproof starts itself with them.
func newHidden() []*cobra.Command {
	hidden := func(use string, n int, runE func(cmd *cobra.Command, args []string) error) *cobra.Command {
		return &cobra.Command{Use: use, Hidden: true, Args: args(cobra.ExactArgs(n)), RunE: runE}
	}
	var c extension.Config
	aggregated := hidden("extension", 0, func(cmd *cobra.Command, _ []string) error { return extension.Run(cmd.Context(), c) })
	aggregated.Short = "Serve the aggregated APIs of a run"
	flags := aggregated.Flags()
	flags.StringVar(&c.Address, "address", "", "host:port to listen on")
	flags.StringVar(&c.CertFile, "tls-cert-file", "", "its serving certificate")
	flags.StringVar(&c.KeyFile, "tls-private-key-file", "", "the key of that")
	flags.StringVar(&c.ClientCAFile, "requestheader-client-ca-file", "", "the authority of front proxies")
	flags.StringVar(&c.AllowedName, "requestheader-allowed-name", "", "the common name of the front proxy that may speak for others")
	flags.StringVar(&c.APIs, "apis", "", "the file that says what to serve")
	return []*cobra.Command{
		aggregated,
		hidden(suite.RunSpecCommand, 0, func(cmd *cobra.Command, _ []string) error {
			s, err := run.ReadSpec(cmd.InOrStdin())
			if err != nil {
				return err
			}
			return carryOut(cmd, s)
		}),
		hidden(run.SandboxedCommand+" DIR", 1, func(cmd *cobra.Command, args []string) error {
			limitMemory()
			err := run.Sandboxed(cmd.Context(), run.Dir(args[0]), console(cmd))
			if errors.Is(err, engine.ErrStopped) { // the outer half says it
				return &exitError{code: exitNotRun}
			}
			return err
		}),
		hidden(run.SessionCommand+" DIR", 1, func(cmd *cobra.Command, args []string) error {
			return run.Sessioned(cmd.Context(), run.Dir(args[0]), cmd.InOrStdin(), console(cmd))
		}),
		hidden(run.CheckSandboxCommand+" SCRATCH", 1, func(_ *cobra.Command, args []string) error { return sandbox.Try(args[0]) }),
	}
}
