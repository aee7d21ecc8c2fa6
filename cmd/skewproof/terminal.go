package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// endOnSignal lets the first signal that is to end the command call cancel. A second one ends this
// process, and the sandbox with it.
//
// Signals that this process was started to ignore stay ignored, which [signal.Notify] would undo:
// with nohup, a run outlives its terminal, and the background jobs of a script outlive a Ctrl-C.
func endOnSignal(cancel context.CancelFunc) {
	ending := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
	if len(ending) == 0 { // to Notify, none means all
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ending...)
	go func() {
		<-signals
		signal.Stop(signals)
		fmt.Fprintln(os.Stderr, "skewproof: stopping; a second Ctrl-C ends everything at once")
		cancel()
	}()
}

// endOnIgnored ends a context on the first of these signals that this process was started to
// ignore, and this process on the second. It is for a cluster that is held, which has no end of its
// own: a shell starts its background jobs so that they ignore SIGINT.
func endOnIgnored(parent context.Context, ending ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	ignored := slices.DeleteFunc(ending, func(s os.Signal) bool { return !signal.Ignored(s) })
	if len(ignored) == 0 { // to Notify, none means all
		return ctx, cancel
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, ignored...)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "skewproof: stopping; a second signal ends everything at once")
		cancel()
		<-signals
		os.Exit(exitNotRun)
	}()
	return ctx, cancel
}

// catchClosedPipes lets writes to a standard output that nobody reads any more fail, as in
// 'skewproof conformance | head'. Otherwise they would end this process before its reports are
// written and its clusters removed. The signal is caught rather than ignored: an ignored signal
// stays ignored in the programs that are started.
func catchClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// standardOutput is the standard output. What is written after its reader has gone is lost, which
// is no error: files and the exit code say the same.
type standardOutput struct{ file *os.File }

func (o standardOutput) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	return n, err
}

func isTerminal(w io.Writer) bool {
	if o, ok := w.(standardOutput); ok {
		w = o.file
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// console is where a command shows what it finds.
func console(cmd *cobra.Command) run.Console {
	out := cmd.OutOrStdout()
	return run.Console{Out: out, Progress: cmd.ErrOrStderr(), Color: isTerminal(out)}
}

// tell is [run.Console.Show] for a command that has a writer only.
func tell(out io.Writer, dir string, saved error, write func(reports.SummaryOptions) error) error {
	return run.Console{Out: out, Color: isTerminal(out)}.Show(dir, saved, write)
}
