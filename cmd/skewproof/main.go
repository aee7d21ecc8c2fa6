// Command skewproof proves, or disproves, that a Kubernetes control plane stays correct while its
// kube-apiservers run different versions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

func main() { os.Exit(execute(os.Args[1:])) }

func execute(words []string) int {
	run.SilenceClients()
	root := newRoot()
	cmd, _, unknown := root.Find(words)
	ours := unknown == nil && cmd.Hidden // skewproof has started this process, and tells the user what there is to tell
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	endOnSignal(func() {
		if !ours {
			fmt.Fprintln(os.Stderr, "skewproof: stopping; a second Ctrl-C ends everything at once")
		}
		cancel(engine.ErrStopped)
	})
	catchClosedPipes()
	root.SetArgs(joinKnown(words))
	root.SetOut(standardOutput{os.Stdout})
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &exit):
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra has no error type for this
		exit = &exitError{code: exitUsage, err: unknownCommand(root, err)}
	default:
		exit = &exitError{code: exitNotRun, err: err}
	}
	if exit.err != nil {
		fmt.Fprintln(os.Stderr, "skewproof:", reports.Printable(exit.err.Error()))
	}
	if !ours {
		if line := beforeMake(exit); line != "" {
			fmt.Fprintln(os.Stderr, "skewproof:", line)
		}
	}
	return exit.code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "skewproof",
		Version: run.Version() + " (" + runtime.Version() + ")",
		Short:   "Prove that a Kubernetes control plane stays correct while its kube-apiservers run different versions",
		Long: `skewproof starts control planes of real kube-apiservers of different versions, puts them under load, injects faults, and
judges the recorded history by the promises of the Mixed Version Proxy (KEP-4020). Its simulator searches thousands of schedules for one
that breaks a promise, and skewproof replays such a schedule on real kube-apiservers.

` + beginHere + `

Verdicts, the first that applies:
  FAIL          something that counts was violated, and no finding explains all of it: something is NEW
  INCONCLUSIVE  nothing is NEW, and something that the run is about was not decided
  KNOWN         findings explain every violation that counts
  PASS          nothing that counts was violated
Core invariants count (what the KEP demands); with --strict, those beyond the KEP count as well.

Exit codes:
  0  PASS; with --known also KNOWN
  1  something that counts was violated; with --known only FAIL
  2  INCONCLUSIVE
  3  the command could not be carried out; the message says why
  4  wrong usage
For bench, clients, diff, plan, replay and upstream-e2e, 0 to 2 have another meaning, which their --help explains. shell ends with
the exit code of its last command; step ends with 0, 3 or 4.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.DisableSuggestions, root.SuggestionsMinimumDistance = true, 2 // unknownCommand makes suggestions itself, in one line
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.DisplayName}} {{.Version}}\n")
	addGroups(root)
	root.AddCommand(newHidden()...)
	withCompletion(root)
	strictHelp(root)
	withHelp(root)
	withExitCodes(root)
	return root
}
