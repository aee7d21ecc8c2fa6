package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

func newAblate() *cobra.Command {
	var f searchFlags
	var to string
	cmd := &cobra.Command{
		Use:   "ablate",
		Short: "Find out which single switch between two policies removes which violations",
		Long: `Find out which single switch between two policies removes which violations.

For each switch in which the policies differ, the same random schedules are run under the first policy with that switch alone as in the second, and under
the second with that switch alone as in the first. The table is printed, and written as text, Markdown and JSON.`,
		Example: `  skewproof ablate
  skewproof ablate --from-policy upstream-1.36 --to-policy upstream-1.37 --seeds 500`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			progress := cmd.ErrOrStderr()
			if err := f.complete(progress); err != nil {
				return err
			}
			ablation, err := search.Ablate(f.spec, to, f.options)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			dir, err := f.prepare("ablate")
			if err != nil {
				return err
			}
			a, err := ablation.Run(cmd.Context(), func(policy string, done, of int) { fmt.Fprintf(progress, "%d of %d: %s\n", done+1, of, policy) })
			if err != nil {
				return notRun(err)
			}
			out := cmd.OutOrStdout()
			if err := tell(out, dir, reports.WriteAblation(dir, a), func(reports.SummaryOptions) error { return reports.WriteAblationText(out, a) }); err != nil {
				return err
			}
			if !a.Complete {
				return &exitError{exitInconclusive, errors.New("it was " + a.Ended())}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	f.register(flags, "ablate")
	flags.StringVar(&f.spec.Policy, "from-policy", "upstream-1.37", "the policy to begin with")
	flags.StringVar(&to, "to-policy", "reference", "the policy to compare it with")
	f.registerRandom(flags)
	flags.Uint64Var(&f.options.Seeds, "seeds", search.DefaultAblationSeeds, "how many schedules are run under each policy")
	return cmd
}
