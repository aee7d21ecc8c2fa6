package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/cluster/kind"
)

// newKindClean removes what killed runs have left in the Docker engine.
func newKindClean() *cobra.Command {
	return &cobra.Command{
		Use:   "kind-clean [CLUSTER...]",
		Short: "Remove kind clusters, networks and keys that killed runs have left behind",
		Long: `Remove kind clusters, networks and keys that killed runs have left behind: those named, or all that were made by skewproof. Runs that are still
under way lose their clusters too. A run that ends by itself, or by Ctrl-C, leaves nothing. Node images stay.`,
		RunE: func(cmd *cobra.Command, clusters []string) error {
			if len(clusters) == 0 {
				var err error
				if clusters, err = kind.Leftovers(cmd.Context()); err != nil {
					return err
				}
			}
			for _, name := range clusters {
				keys, err := kind.Clean(cmd.Context(), name)
				if err != nil {
					return fmt.Errorf("remove cluster %s: %w", name, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", name)
				if keys != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "removed its keys, %s\n", keys)
				}
			}
			if len(clusters) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing is left of any run")
			}
			return nil
		},
	}
}
