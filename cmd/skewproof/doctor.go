package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
)

func newDoctor() *cobra.Command {
	var s run.Spec
	possible := []string{scenario.BackendSim, scenario.BackendLocal, scenario.BackendKind}
	cmd := &cobra.Command{
		Use:   "doctor [BACKEND…]",
		Short: "Say what this machine lacks for each backend",
		Long: `Say, in seconds, what this machine lacks for each backend, and what to do about it. It starts no server and gets no binary.

Without arguments it checks sim, local and kind, and the exit code is that of local.

Exit codes:
  0  every named backend can be used
  3  a named backend cannot be used; the output says why
  4  wrong usage`,
		Example: `  skewproof doctor
  skewproof doctor kind --from v1.35.4 --to v1.36.3`,
		ValidArgs: possible,
		RunE: func(cmd *cobra.Command, named []string) error {
			for _, backend := range named {
				if !slices.Contains(possible, backend) {
					return usage("backend %q: want %s", backend, strings.Join(possible, ", "))
				}
			}
			out, backends, decisive := cmd.OutOrStdout(), named, named
			if len(named) == 0 {
				backends, decisive = possible, []string{scenario.BackendLocal}
			}
			fmt.Fprintf(out, "skewproof %s on %s\n", run.Version(), strings.Join(run.Machine(), ", "))
			var lacking []string
			for _, backend := range backends {
				s.Scenario, s.Backend = "quiet", backend
				plan, err := s.Plan()
				if err != nil {
					return err
				}
				facts, err := plan.Ready(cmd.Context())
				if err != nil {
					lacking = append(lacking, backend)
					fmt.Fprintf(out, "✗ %s: %v\n", backend, err)
					continue
				}
				fmt.Fprintf(out, "✓ %s\n", backend)
				for _, fact := range facts {
					fmt.Fprintf(out, "    %s\n", fact)
				}
			}
			if slices.ContainsFunc(lacking, func(backend string) bool { return slices.Contains(decisive, backend) }) {
				return &exitError{code: exitNotRun}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.From, "from", "", "the older kube-apiserver version")
	show(flags, "from", run.DefaultFrom)
	flags.StringVar(&s.To, "to", "", "the newer kube-apiserver version")
	show(flags, "to", run.DefaultTo)
	return cmd
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of skewproof, and the versions of Kubernetes that it tests unless told otherwise",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "skewproof %s\nby default from %s to %s\n", cmd.Root().Version, run.DefaultFrom, run.DefaultTo)
			return err
		},
	}
}
