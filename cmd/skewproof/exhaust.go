package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/sim/search"
)

func newExhaust() *cobra.Command {
	var f searchFlags
	var shard string
	var events int
	cmd := &cobra.Command{
		Use:   "exhaust",
		Short: "Run every schedule of a few servers, resources and events in the simulator",
		Long: `Run every schedule of a few servers, resources and events in the simulator.

The events are: cutting what one server dials of another or of etcd, and healing it; killing and starting; pausing and resuming; restarting;
replacing by the other version; defining and deleting a custom resource. After each there are seven seconds, and six seconds after it every
server is asked for every resource. In the end everything is healed, and everything is asked again.`,
		Example: `  skewproof exhaust --servers 2 --resources 2 --events 4
  skewproof exhaust --policy upstream-1.37 --servers 3 --events 2`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(shard); err != nil {
				return err
			}
			if err := search.CheckScope(f.spec, events); err != nil {
				return &exitError{exitUsage, err}
			}
			dir, err := f.prepare("exhaust", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			c, err := search.Exhaust(cmd.Context(), f.spec, events, f.options)
			if err != nil {
				return notRun(err)
			}
			return finish(dir, c, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	f.registerPolicy(flags, "exhaust", &shard)
	flags.IntVar(&f.spec.Servers, "servers", 2, "number of apiservers, 2 or 3; the first is of the newer version")
	flags.IntVar(&f.spec.Resources, "resources", 2, "how many resources are served, 1 or 2")
	flags.IntVar(&events, "events", 3, fmt.Sprintf("the most events of a schedule, 1 to %d", search.MostEvents))
	return cmd
}
