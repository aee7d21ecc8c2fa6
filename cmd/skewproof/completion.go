package main

import (
	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
)

// withCompletion makes a shell complete the names that the commands below root take: scenarios,
// subjects, backends, and versions with a binary in the cache.
func withCompletion(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		withCompletion(cmd)
		for flag, complete := range map[string]cobra.CompletionFunc{
			"subject": cobra.FixedCompletions(scenario.Subjects, cobra.ShellCompDirectiveNoFileComp),
			"backend": cobra.FixedCompletions(
				[]string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim, scenario.BackendExisting}, cobra.ShellCompDirectiveNoFileComp),
			"from": completeVersions,
			"to":   completeVersions,
		} {
			if cmd.Flags().Lookup(flag) != nil {
				if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
					panic(err) // the flag exists, and nothing else completes it
				}
			}
		}
		switch cmd.Name() {
		case "run", "bench", "parity":
			cmd.ValidArgsFunction = completeScenarios
		}
	}
}

func completeScenarios(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, s := range scenarios.All() {
		names = append(names, cobra.CompletionWithDesc(s.Name, s.Happens))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeVersions(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cached, _ := (&binaries.Store{}).List() // damaged entries are left out
	var versions []cobra.Completion
	for _, b := range cached {
		if b.Component == binaries.KubeAPIServer {
			versions = append(versions, b.Version)
		}
	}
	return versions, cobra.ShellCompDirectiveNoFileComp
}
