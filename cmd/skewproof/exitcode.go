package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// These are the exit codes. For bench, clients, diff, plan, replay and upstream-e2e, 0 to 2
// have other meanings.
const (
	exitPass         = 0
	exitFail         = 1
	exitInconclusive = 2
	exitNotRun       = 3
	exitUsage        = 4
)

// exitError carries an exit code. If err is nil, everything has already been said.
type exitError struct {
	code int
	err  error
	// word is the word of the verdict that the code follows from; "" if it follows from no verdict.
	word string
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
	return &exitError{code: exitNotRun, err: err}
}

func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
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
				return &exitError{code: exitUsage, err: err}
			}
			return notRun(err)
		}
	}
	for _, below := range cmd.Commands() {
		withExitCodes(below)
	}
}

// judged turns the verdict on a run, a suite, a table or a search into an exit code. Without known,
// whatever counts and was violated fails, whether it is known or not. With known, only the word
// decides.
func judged(s invariant.Standing, known bool, err error) error {
	if err != nil {
		return err
	}
	switch o := s.Outcome(); {
	case o == invariant.OutcomeFail, s.Violated && !known:
		return &exitError{code: exitFail, word: reports.Word(o)}
	case o == invariant.OutcomeInconclusive:
		return &exitError{code: exitInconclusive, word: reports.Word(o)}
	}
	return nil
}

// verdictError turns the verdict on one invariant, or on a comparison, into an exit code.
func verdictError(o invariant.Outcome, err error) error {
	switch {
	case err != nil:
		return err
	case o == invariant.OutcomePass:
		return nil
	case o == invariant.OutcomeFail:
		return &exitError{code: exitFail}
	}
	return &exitError{code: exitInconclusive}
}

// resultError turns the result of a table into an exit code.
func resultError(r reports.Result, err error) error { return verdictError(r.Outcome(), err) }

// madeBy is the variable that make sets for the programs that it starts.
const madeBy = "MAKELEVEL"

// beforeMake explains an exit code in a line just above the "Error" line that make adds. It is ""
// if make did not start this program.
func beforeMake(exit *exitError) string {
	if os.Getenv(madeBy) == "" {
		return ""
	}
	means := map[int]string{
		exitFail:         "something that counts was violated",
		exitInconclusive: "nothing was proved",
		exitNotRun:       "the command could not be carried out",
		exitUsage:        "wrong usage",
	}[exit.code]
	switch {
	case exit.word == "" && exit.code <= exitInconclusive:
		means = "the --help of the command says what it means"
	case exit.word == reports.Word(invariant.OutcomeKnown):
		means += "; with KNOWN=1, what is known passes"
	}
	if exit.word != "" {
		return fmt.Sprintf("%s, exit code %d: %s. The next line is make's own.", exit.word, exit.code, means)
	}
	return fmt.Sprintf("exit code %d: %s. The next line is make's own.", exit.code, means)
}
