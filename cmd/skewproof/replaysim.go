package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

// replaySimulated runs the file in the simulator and tells what happened.
func (f *replayFlags) replaySimulated(r *search.Repro, out io.Writer) error {
	result, verdicts, err := r.Replay(f.trace != "")
	if err != nil {
		return notRun(err)
	}
	v := verdictOn(verdicts, r.Invariant)
	tellStory(out, r, result.History, v)
	fmt.Fprintf(out, "\n%s\n%s\n", judged(r, v), compareTraces(r, result))
	if err := f.save(r, result, out); err != nil {
		return err
	}
	return outcomeError(v.Outcome)
}

// compareTraces says whether it was the same run.
func compareTraces(r *search.Repro, result *sim.Result) string {
	hash := search.HashText(result.Hash)
	if hash == r.Hash {
		return fmt.Sprintf("The trace is that of the file (%s).", hash)
	}
	by := "a skewproof that does not say of which commit it was"
	if r.Commit != "" {
		by = "skewproof " + r.Commit
	}
	return fmt.Sprintf("The trace is another (%s, in the file %s): code or policy have changed since the file was written, by %s. "+
		"This is skewproof %s.", hash, r.Hash, by, run.Version())
}

// save writes what was asked for. A trace that could not be written whole is removed, unless it was to go to a device or a pipe.
func (f *replayFlags) save(r *search.Repro, result *sim.Result, out io.Writer) error {
	if f.trace != "" {
		if err := writeTrace(f.trace, result); err != nil {
			return notRun(err)
		}
		fmt.Fprintf(out, "The trace is in %s.\n", f.trace)
	}
	if f.out == "" {
		return nil
	}
	dir, err := run.NewDir(f.out, "replay", r.Spec.Policy, time.Now())
	if err != nil {
		return err
	}
	defer dir.Tidy()
	result.History.Run.Reproduce = shell.Line("skewproof", "replay", f.file)
	result.History.Run.Environment = []string{run.Simulated}
	if err := dir.SaveHistory(result.History); err != nil {
		return notRun(err)
	}
	if _, err := dir.Judge(false, run.Console{Out: io.Discard}); err != nil {
		return err
	}
	fmt.Fprintf(out, "History and reports are in %s.\n", dir)
	return nil
}

func writeTrace(path string, result *sim.Result) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err == nil {
			return
		}
		err = fmt.Errorf("write the trace: %w; free some space, or choose another file with --trace", err)
		if info, statErr := os.Lstat(path); statErr == nil && info.Mode().IsRegular() {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	return result.WriteTrace(file)
}
