package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/skewproof/skewproof/internal/sandbox"
)

// enter runs the sandboxed half, and judges what it recorded: at its end, or with --keep as soon as the steps are over.
func (f *runFlags) enter(ctx context.Context, dir runDir, out, progress io.Writer) error {
	keptReader, keptWriter, err := os.Pipe()
	if err != nil {
		return notRun(err)
	}
	defer func() { _ = keptReader.Close() }()
	var code int
	ended := make(chan error, 1)
	go func() {
		defer func() { _ = keptWriter.Close() }()
		var err error
		code, err = sandbox.Enter(ctx, sandbox.Command{
			Args: []string{insideCommand, string(dir)}, Stdout: unwrapped(out), Stderr: progress, ExtraFiles: []*os.File{keptWriter},
			Started: func(pid int) {
				_ = keptWriter.Close() // the sandboxed half has its own
				if err := os.WriteFile(dir.pid(), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
					fmt.Fprintf(progress, "note the sandbox for 'skewproof shell': %v\n", err)
				}
			},
		})
		ended <- err
	}()
	said := make([]byte, 1)
	if n, _ := keptReader.Read(said); n == 1 { // end of file without a byte: it has ended, or never started
		verdict := f.judge(dir, said[0] == keptComplete, out)
		fmt.Fprintf(progress, "The cluster stays up. Enter it with 'skewproof shell %s'; end it with Ctrl-C here.\n", dir)
		<-ended
		return verdict
	}
	switch err := <-ended; {
	case err != nil:
		return notRun(fmt.Errorf("%w; logs are in %s", err, dir.files().Logs))
	case code == 0:
		return f.judge(dir, true, out)
	case ctx.Err() != nil:
		return notRun(errors.New("interrupted before there was a verdict"))
	default:
		return f.judge(dir, false, out)
	}
}

// judge judges a run. One that was not carried out to its end, as the sandboxed half has said, may still show a violation, but never a pass.
func (f *runFlags) judge(dir runDir, complete bool, out io.Writer) error {
	if _, err := os.Stat(dir.history()); !complete && err != nil {
		return notRun(fmt.Errorf("the run did not get as far as a history; logs are in %s", dir.files().Logs))
	}
	verdict := judgeRun(dir, f.strict, out)
	if complete {
		return verdict
	}
	return endedEarly(verdict, fmt.Errorf("the run was not carried out to its end; logs are in %s", dir.files().Logs))
}

// endedEarly is what a run that was not carried out to its end comes to, with why it was not: its verdict counts if that is a violation.
func endedEarly(verdict, why error) error {
	var exit *exitError
	if errors.As(verdict, &exit) && exit.code == exitFail {
		return verdict
	}
	if isNotRun(verdict) { // it could not even be judged, or its reports not be written
		why = errors.Join(why, verdict)
	}
	return notRun(why)
}
