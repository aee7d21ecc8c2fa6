// Command skewproof proves, or disproves, that a Kubernetes control plane stays correct while its kube-apiservers run
// different versions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Exit codes, the same for every command.
const (
	exitPass         = 0
	exitFail         = 1
	exitInconclusive = 2
	exitNotRun       = 3
	exitUsage        = 4
)

func main() { os.Exit(execute(os.Args[1:])) }

func execute(args []string) int {
	// The first signal ends the run in good order; a second one ends this process, and the sandbox with it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(os.Stderr, "skewproof:", exit.err)
		}
		return exit.code
	default: // cobra's own errors are about flags, arguments and commands
		fmt.Fprintf(os.Stderr, "skewproof: %v\nTry 'skewproof --help'.\n", err)
		return exitUsage
	}
}

// exitError carries an exit code. With a nil err, everything that is to be said has been said.
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

func notRun(err error) error { return &exitError{exitNotRun, err} }

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// outcomeError turns what the invariants came to into an exit code.
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

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "skewproof",
		Short: "Prove that a Kubernetes control plane stays correct while its kube-apiservers run different versions",
		Long: `skewproof brings up control planes of real kube-apiservers of different versions, puts them under load, breaks them,
and judges what it recorded by the promises of the Mixed Version Proxy (KEP-4020).

Exit codes, the same for every command:
  0  every core invariant (what the KEP demands) passed
  1  one was violated
  2  inconclusive: the run proved nothing
  3  it could not be run; the message says why
  4  wrong usage`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newList(), newRun(), newJudge(), newReport(), newBench(), newShell(), newBinaries(), newInside())
	return root
}
