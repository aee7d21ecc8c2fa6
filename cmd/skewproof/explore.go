package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/sim/search"
)

// defaultSearchTime is how long a search goes on where neither a time nor a number of schedules is given.
const defaultSearchTime = time.Minute

func newExplore() *cobra.Command {
	var f searchFlags
	var shard string
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Search random schedules in the simulator for one that violates an invariant",
		Long: `Search random schedules of faults, restarts, upgrades and custom resources in the simulator for one that violates an invariant.

Each seed gives a schedule: the same one under every policy, on every machine. What is found stops nothing: at the end one violation of each
kind is shrunk to a small schedule and written as a repro file, which 'skewproof replay' runs again. One schedule in a hundred is run
twice and compared. Ctrl-C ends the search, and what was found until then is written.`,
		Example: `  skewproof explore                                    # the reference, for a minute
  skewproof explore --policy upstream-1.37 --seeds 20000
  skewproof explore --policy upstream-1.37 --change Knowledge.KeepLastGood=true --for 5m
  skewproof explore --seeds 1000000 --shard 3/8 --out shard-3`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := &f.options
			seeds, forTime := cmd.Flags().Changed("seeds"), cmd.Flags().Changed("for")
			switch {
			case seeds && forTime:
				return usage("--seeds and --for: give how many schedules, or for how long, and not both")
			case seeds && o.Seeds < 1:
				return usage("--seeds %d: want at least 1", o.Seeds)
			case forTime && o.For <= 0:
				return usage("--for %s: want a time above 0", o.For)
			case seeds:
				o.For = 0
			default:
				o.Seeds = 0
			}
			if err := f.check(shard); err != nil {
				return err
			}
			if _, err := search.NewGenerator(f.spec); err != nil {
				return &exitError{exitUsage, err}
			}
			dir, err := f.prepare("explore", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			c, err := search.Explore(cmd.Context(), f.spec, *o)
			if err != nil {
				return notRun(err)
			}
			return finish(dir, c, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	f.registerPolicy(flags, "explore", &shard)
	flags.IntVar(&f.spec.Servers, "servers", 3, fmt.Sprintf("number of apiservers, 1 to %d", search.MaxServers))
	flags.IntVar(&f.spec.Resources, "resources", 6, "how many resources are served, the most telling first; 0 for all, which is slower")
	flags.IntVar(&f.spec.Requests, "requests", search.DefaultRequests, "how many requests a schedule has")
	flags.Uint64Var(&f.options.Seeds, "seeds", 0, "how many schedules are run, over all shards, rather than for how long")
	flags.Uint64Var(&f.options.First, "first", 1, "the first seed")
	flags.DurationVar(&f.options.For, "for", defaultSearchTime, "for how long schedules are run, where --seeds does not say how many")
	return cmd
}
