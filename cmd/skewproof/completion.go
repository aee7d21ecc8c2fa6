package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/cluster/existing"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/suite"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/recorded"
)

// withCompletion makes a shell complete the names that the commands below root take: scenarios,
// subjects, backends, versions, contexts, and directories of runs.
func withCompletion(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		withCompletion(cmd)
		versions := completeVersions
		switch cmd.Name() {
		case "plan", "explore", "exhaust", "ablate": // these read what a version serves
			versions = completeRecorded
		}
		presets := cobra.FixedCompletions(policies(), cobra.ShellCompDirectiveNoFileComp)
		for flag, complete := range map[string]cobra.CompletionFunc{
			"subject": cobra.FixedCompletions(scenario.Subjects, cobra.ShellCompDirectiveNoFileComp),
			"backend": cobra.FixedCompletions(
				[]string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim, scenario.BackendExisting},
				cobra.ShellCompDirectiveNoFileComp),
			"from":   versions,
			"to":     versions,
			"record": completeVersions,
			"policy": presets, "from-policy": presets, "to-policy": presets,
			"scenarios": completeList(scenarioNames),
			"subjects":  completeList(func() []string { return scenario.Subjects }),
			"pairs":     completeList(pairs),
			"labels":    cobra.FixedCompletions(labels(), cobra.ShellCompDirectiveNoFileComp),
			"output":    completeOutput,
			"known":     completeFindings,
			"contexts":  completeContexts,
			"versions":  completeList(func() []string { return recorded.Names() }),
		} {
			if cmd.Flags().Lookup(flag) != nil {
				if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
					panic(err) // the flag exists, and nothing else completes it
				}
			}
		}
		switch cmd.Name() {
		case "run", "bench":
			cmd.ValidArgsFunction = completeScenarios
		case "step", "shell":
			cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		}
	}
}

// policies are the presets of the proxy, and none for the feature switched off.
func policies() []string {
	names := []string{scenario.SubjectNone}
	for _, p := range proxy.Presets() {
		names = append(names, p.Name)
	}
	return names
}

func scenarioNames() (names []string) {
	for _, s := range scenarios.All() {
		names = append(names, s.Name)
	}
	return names
}

// pairs returns the pairs of consecutive recorded versions, and those of the matrix.
func pairs() []string {
	all := suite.MatrixPairs()
	names := slices.CompactFunc(recorded.Released(), func(a, b string) bool { return semver.MajorMinor(a) == semver.MajorMinor(b) })
	for i := 1; i < len(names); i++ {
		all = append(all, names[i-1]+".."+names[i])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// labels are the labels of all scenarios and families, without the names of scenarios.
func labels() (all []string) {
	for _, s := range scenarios.All() {
		all = slices.Concat(all, s.Labels, s.Family.Labels())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// completeList completes the last word of a list that is separated by commas, and omits the words
// that the list already has.
func completeList(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := ""
		if at := strings.LastIndexByte(typed, ','); at >= 0 {
			before = typed[:at+1]
		}
		var all []cobra.Completion
		for _, word := range words() {
			if !slices.Contains(strings.Split(before, ","), word) {
				all = append(all, before+word)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeContexts completes the contexts of the kubeconfig that the command line names, or of
// kubectl's own.
func completeContexts(cmd *cobra.Command, given []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	contexts := existing.Contexts(cmd.Flags().Lookup("kubeconfig").Value.String())
	return completeList(func() []string { return contexts })(cmd, given, typed)
}

// completeOutput completes the forms that a command's help names.
func completeOutput(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	usage := cmd.Flags().Lookup("output").Usage
	words := strings.FieldsFunc(usage, func(r rune) bool { return r == ' ' || r == ',' })
	return slices.DeleteFunc(words, func(word string) bool { return word == "or" }), cobra.ShellCompDirectiveNoFileComp
}

// completeFindings completes files with findings of the user's own.
func completeFindings(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeScenarios(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, s := range scenarios.All() {
		names = append(names, cobra.CompletionWithDesc(s.Name, s.Happens))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRecorded completes the versions of which it is recorded what they serve.
func completeRecorded(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	dirs := []string{}
	if f := cmd.Flags().Lookup("documents"); f != nil {
		dir, _ := recordings() // without a directory only the embedded ones
		dirs = append(dirs, cmp.Or(f.Value.String(), dir))
	}
	return recorded.Names(dirs...), cobra.ShellCompDirectiveNoFileComp
}

// completeVersions completes the versions of which there is a binary in the cache, and those of
// which it is recorded what they serve.
func completeVersions(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cached, _ := (&binaries.Store{}).List() // damaged entries are omitted
	versions := recorded.Released()
	for _, b := range cached {
		if b.Component == binaries.KubeAPIServer {
			versions = append(versions, b.Version)
		}
	}
	slices.SortFunc(versions, semver.Compare)
	return slices.Compact(versions), cobra.ShellCompDirectiveNoFileComp
}
