package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/scenarios"
)

func newList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the scenarios, a sentence each, and the invariants they are about",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if asJSON {
				encoder := json.NewEncoder(out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(scenarios.All())
			}
			for _, s := range scenarios.All() {
				_, err := fmt.Fprintf(out, "%s\n  %s\n  Must hold: %s\n  About: %s\n\n", s.Name, s.Happens, s.Holds, strings.Join(s.About, ", "))
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
