package main

import "github.com/spf13/cobra"

// beginHere are the commands that a newcomer needs first, with lines to type. Each runs without a
// cluster and without binaries.
const beginHere = `Begin with these:
  skewproof list                                 what can be tested, in scenarios
  skewproof run rolling-upgrade --backend sim    a scenario in the simulator, in seconds; it fails, by a known defect: finding 2
  skewproof finding 2                            what a finding is: who is affected, and how to avoid it
  skewproof plan --from v1.36.3 --to v1.37.1     what an upgrade changes, and what to do in which order
  skewproof doctor                               what this machine lacks to run real kube-apiservers`

// addGroups adds the commands to root, in the groups in which the help shows them.
func addGroups(root *cobra.Command) {
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"test", "Test:", []*cobra.Command{
			newList(), newRun(), newConformance(), newMatrix(), newBench(), newClients(), newUpstream(), newShell(), newStep(),
		}},
		{"search", "Search:", []*cobra.Command{newExplore(), newExhaust(), newReplay(), newAblate()}},
		{"results", "Results:", []*cobra.Command{newJudge(), newReports(), newDiff(), newFinding(), newExplain()}},
		{"upgrade", "Before an upgrade:", []*cobra.Command{newPlan()}},
		{setUp, "Set-up:", []*cobra.Command{newDoctor(), newBinaries(), newKindClean(), newVersion()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(setUp)
	root.SetCompletionCommandGroupID(setUp)
}

// setUp is the group of the commands that prepare a machine, and of cobra's own commands.
const setUp = "set-up"
