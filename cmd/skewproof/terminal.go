package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// endOnSignal makes the first signal that should end the command call end. A second signal ends
// this process, and the sandbox with it.
//
// If this process was started to ignore a signal, it continues to ignore it. [signal.Notify] would
// change that. So with nohup a run survives its terminal, and the background jobs of a script
// survive a Ctrl-C.
func endOnSignal(end func()) {
	ending := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
	if len(ending) == 0 { // Notify without signals would mean all signals
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ending...)
	go func() {
		<-signals
		signal.Stop(signals)
		end()
	}()
}

// endOnIgnored is for signals that this process was started to ignore. The first of them ends the
// context, and the second ends this process. endOnIgnored is for a held cluster, which does not end
// by itself, because a shell starts its background jobs so that they ignore SIGINT.
func endOnIgnored(parent context.Context, ending ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	end := func() { cancel(engine.ErrStopped) }
	ignored := slices.DeleteFunc(ending, func(s os.Signal) bool { return !signal.Ignored(s) })
	if len(ignored) == 0 { // Notify without signals would mean all signals
		return ctx, end
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, ignored...)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "skewproof: stopping; a second signal ends everything at once")
		end()
		<-signals
		os.Exit(exitNotRun)
	}()
	return ctx, end
}

// catchClosedPipes makes writes to standard output fail if its reader has closed it, as in
// 'skewproof conformance | head'. Otherwise such a write would end this process before it has
// written its reports and removed its clusters. The signal is caught rather than ignored, because
// an ignored signal stays ignored in the programs that this process starts.
func catchClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// standardOutput is the standard output. Text that is written after its reader has closed it is
// lost. This is not an error, because files and the exit code say the same.
type standardOutput struct{ file *os.File }

func (o standardOutput) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	return n, err
}

// Columns is the width of texts: that of the terminal, if it is one.
func (o standardOutput) Columns() int {
	if columns, _, ok := terminalSize(o); ok {
		return max(columns, 60)
	}
	return math.MaxInt
}

func isTerminal(w io.Writer) bool {
	fd, ok := descriptor(w)
	return ok && term.IsTerminal(fd)
}

// terminalSize returns the columns and rows of a terminal. ok is false if w is not a terminal.
func terminalSize(w io.Writer) (columns, rows int, ok bool) {
	fd, ok := descriptor(w)
	if !ok {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(fd)
	return columns, rows, err == nil
}

// descriptor is the file descriptor that w writes to, if there is one.
func descriptor(w io.Writer) (fd int, ok bool) {
	if o, ok := w.(standardOutput); ok {
		w = o.file
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), true
}

// console is where a command shows its results.
func console(cmd *cobra.Command) run.Console {
	out := cmd.OutOrStdout()
	return run.Console{Out: out, Progress: cmd.ErrOrStderr(), Color: isTerminal(out)}
}

// tell is [run.Console.Show] for a command that only has a writer.
func tell(out io.Writer, dir string, saved error, write func(reports.SummaryOptions) error) error {
	return run.Console{Out: out, Color: isTerminal(out)}.Show(dir, saved, write)
}
