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

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// These are the exit codes. For bench, parity and replay, passing and failing have other meanings.
const (
	exitPass         = 0
	exitFail         = 1
	exitInconclusive = 2
	exitNotRun       = 3
	exitUsage        = 4
)

func main() { os.Exit(execute(os.Args[1:])) }

func execute(words []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	endOnSignal(cancel)
	catchClosedPipes()
	root := newRoot()
	root.SetArgs(words)
	root.SetOut(standardOutput{os.Stdout})
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(os.Stderr, "skewproof:", reports.Printable(exit.err.Error()))
		}
		return exit.code
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra has no error type for this
		fmt.Fprintln(os.Stderr, "skewproof:", reports.Printable(unknownCommand(root, err).Error()))
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "skewproof:", reports.Printable(err.Error()))
		return exitNotRun
	}
}

// exitError carries an exit code. If err is nil, everything has already been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// notRun gives an error the exit code exitNotRun. It returns nil for nil.
func notRun(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitNotRun, err}
}

// args makes a wrong number of arguments an error of wrong usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		if err := check(cmd, words); err != nil {
			return usage("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// withExitCodes gives the errors of a command and its subcommands their exit codes.
func withExitCodes(cmd *cobra.Command) {
	if runE := cmd.RunE; runE != nil {
		cmd.RunE = func(cmd *cobra.Command, words []string) error {
			err := runE(cmd, words)
			var exit *exitError
			switch {
			case err == nil || errors.As(err, &exit):
				return err
			case run.KindOf(err) == run.KindUsage:
				return &exitError{exitUsage, err}
			}
			return notRun(err)
		}
	}
	for _, below := range cmd.Commands() {
		withExitCodes(below)
	}
}

// outcomeError turns the outcome of a run into an exit code.
func outcomeError(o invariant.Outcome) error {
	switch o {
	case invariant.OutcomePass:
		return nil
	case invariant.OutcomeFail:
		return &exitError{code: exitFail}
	default:
		return &exitError{code: exitInconclusive}
	}
}

// verdictError is outcomeError for a function that may fail.
func verdictError(o invariant.Outcome, err error) error {
	if err != nil {
		return err
	}
	return outcomeError(o)
}

// resultError turns a result into an exit code.
func resultError(r reports.Result, err error) error {
	switch {
	case err != nil:
		return err
	case r == reports.ResultPassed:
		return nil
	case r == reports.ResultFailed:
		return &exitError{code: exitFail}
	}
	return &exitError{code: exitInconclusive}
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

Exit codes:
  0  passed
  1  a core invariant (what the KEP demands) was violated
  2  inconclusive: nothing was proved
  3  the command could not be carried out; the message says why
  4  wrong usage
For bench, diff, parity and replay, 0 to 2 have another meaning, which their --help explains. With --known, only violations that no finding
explains count. shell ends with the exit code of its last command; step ends with 0, 3 or 4.`,
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
	withExitCodes(root)
	return root
}
