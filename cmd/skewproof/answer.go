package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/skewproof/skewproof/reports"
)

// heedClosedPipes lets writes to a standard output that nobody reads any more fail, as in 'skewproof conformance | head', where they would end this process
// before its reports are written and its clusters removed. The signal is caught and not ignored: what is ignored stays so in the programs that are started.
func heedClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// answer is the standard output. What is written after its reader has gone is lost, which is no error: files and the exit code say the same.
type answer struct{ file *os.File }

func (a answer) Write(p []byte) (int, error) {
	n, err := a.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		return len(p), nil
	}
	return n, err
}

// tell shows what was found, also where it could not be saved: to find it may have taken hours. It points to dir, if there is something to read on.
func tell(out io.Writer, dir string, saved error, write func(reports.SummaryOptions) error) error {
	if saved != nil {
		dir = ""
	}
	if err := write(reports.SummaryOptions{Dir: dir, Color: isTerminal(out)}); err != nil {
		return notRun(errors.Join(err, saved))
	}
	if saved != nil {
		return notRun(fmt.Errorf("what is told above could not be saved: %w", saved))
	}
	return nil
}

// unwrapped is the file behind the standard output; any other writer is what it is.
func unwrapped(w io.Writer) io.Writer {
	if a, ok := w.(answer); ok {
		return a.file
	}
	return w
}
