package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/reports"
)

// RunSpecCommand is a hidden command of skewproof. It reads a [run.Spec] as JSON from its standard
// input and carries it out.
const RunSpecCommand = "run-spec"

// These are the exit codes of skewproof; see 'skewproof --help'.
const (
	codePass         = 0
	codeInconclusive = 2
	codeUsage        = 4
)

// A run may take so long to end after SIGTERM before it is killed. If it is killed, the kernel ends
// the rest of a sandbox, but a kind cluster is left behind ('skewproof kind-clean' removes it).
const (
	shutdownGrace     = 30 * time.Second
	KindShutdownGrace = 3 * time.Minute // the longest
)

func shutdownGraceOf(s run.Spec) time.Duration {
	if s.Backend == scenario.BackendKind {
		return KindShutdownGrace
	}
	return shutdownGrace
}

// interrupted is the problem of a run that was ended because the suite was ended.
const interrupted = "interrupted before there was a verdict"

// Finished is the result of a run.
type Finished struct {
	// Begun is false if the suite was ended before the run began.
	Begun bool
	// Code is the exit code. It is -1 if there was none.
	Code int
	// Report is the report that the run wrote. It is nil if there is none.
	Report *reports.RunReport
	// Stopped is true if the suite ended the run before it was over: because the suite was ended, or
	// because the run took too long.
	Stopped bool
	// Problem says why there is no verdict: the last words of the run, or that the run took too
	// long or was interrupted. It is empty for a run that was judged.
	Problem string
	Took    time.Duration
}

// carryOut carries out one run in its own process. program is skewproof. The run writes its output
// to the file Spec.Out+".log". When ctx ends, carryOut ends the run with all its processes.
func carryOut(ctx context.Context, program string, t task) Finished {
	if t.spec.Out == "" {
		return Finished{Begun: true}
	}
	if ctx.Err() != nil {
		return Finished{Code: -1, Problem: "ended before it had begun"}
	}
	began := time.Now()
	f := process(ctx, program, t.limit, t.spec)
	f.Begun, f.Took = true, time.Since(began)
	return f
}

// command is the process of a run, which has not started. It writes its output to log, the file
// Spec.Out+".log".
func command(ctx context.Context, program string, spec run.Spec) (cmd *exec.Cmd, log *os.File, err error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the specification of the run: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(spec.Out), 0o755); err != nil {
		return nil, nil, fmt.Errorf("make a directory for the run: %w", err)
	}
	if log, err = os.OpenFile(spec.Out+".log", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644); err != nil {
		return nil, nil, fmt.Errorf("make a log of the run: %w", err)
	}
	fmt.Fprintf(log, "$ %s --out %s\n", spec.Command(), shell.Quote(spec.Out))
	cmd = exec.CommandContext(ctx, program, RunSpecCommand)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), log, log
	return cmd, log, nil
}

func process(ctx context.Context, program string, limit time.Duration, spec run.Spec) Finished {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return processUntil(limited, ctx, program, limit, spec)
}

// processUntil is process with the context that ends after limit.
func processUntil(limited, ctx context.Context, program string, limit time.Duration, spec run.Spec) Finished {
	cmd, log, err := command(limited, program, spec)
	if err != nil {
		return Finished{Code: -1, Problem: err.Error()}
	}
	defer func() { _ = log.Close() }()
	err = wait(cmd, shutdownGraceOf(spec))
	f := Finished{Code: cmd.ProcessState.ExitCode()} // also -1 for a process that never started
	if report, err := reports.Read(filepath.Join(spec.Out, reports.JSONFile)); err == nil {
		f.Report = &report
	}
	var exit *exec.ExitError
	judged := f.Report != nil && f.Code >= codePass && f.Code <= codeInconclusive
	f.Stopped = limited.Err() != nil && (!judged || !f.Report.Metadata.Complete || f.Report.Metadata.Error != "")
	switch {
	case f.Stopped && ctx.Err() != nil:
		f.Problem, f.Report = interrupted, nil // a stopped run has a report of its first part, which does not count as a result of a suite
	case f.Stopped:
		f.Problem = fmt.Sprintf("not over after %s, and ended", limit)
	case judged: // even if the run got the signal to end at that moment
	case err != nil && !errors.As(err, &exit):
		f.Problem = fmt.Sprintf("run it: %v", err)
	case f.Code < codePass || f.Code > codeInconclusive:
		f.Problem = fmt.Sprintf("exit code %d: %s", f.Code, lastSaid(log))
	default:
		f.Problem = fmt.Sprintf("exit code %d, and no readable report", f.Code)
	}
	return f
}

// wait runs a command. When its context ends, the command gets SIGTERM, and after the grace period
// SIGKILL.
func wait(cmd *exec.Cmd, grace time.Duration) error {
	// The command gets its own process group. Otherwise Ctrl-C at a terminal would reach the
	// command twice, and the second Ctrl-C means "at once". If this process is killed, the command
	// gets SIGTERM. The kernel also sends that signal when the *thread* that started the command
	// ends (prctl(2), PR_SET_PDEATHSIG), so the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd.Run()
}

// lastSaid returns the error with which a run ended, or the last line of its log.
func lastSaid(log io.ReadSeeker) string {
	const tail, unreadable = 4 << 10, "its log cannot be read"
	end, err := log.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = log.Seek(max(0, end-tail), io.SeekStart)
	}
	if err != nil {
		return unreadable
	}
	said, err := io.ReadAll(log)
	if err != nil {
		return unreadable
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if message, ok := strings.CutPrefix(lines[i], "skewproof: "); ok {
			return strings.Join(append([]string{message}, lines[i+1:]...), " ")
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return "its log is empty; is there no space left?"
}

// task is a run of a suite, which is ended after limit. If Spec.Out is empty, there is nothing to
// carry out.
type task struct {
	spec  run.Spec
	limit time.Duration
}

// taskOf is the task of running a plan with its output in a directory.
func taskOf(p *run.Plan, out string) task {
	spec := p.Spec
	spec.Out = out
	return task{spec, run.Limit(p.Schedule)}
}

// carryOutAll carries out tasks, up to parallel at a time (a value below 1 means 1). It begins them
// in their order, and yields the results in that order.
//
// Each task is its own process, in its own namespaces, so that tasks do not disturb each other. If
// the machine has too few processors, the runs notice it and become inconclusive.
//
// When ctx ends, or the caller leaves the loop, carryOutAll ends the active tasks and begins no
// others. All processes are gone when the loop ends.
func carryOutAll(ctx context.Context, program string, parallel int, tasks []task) iter.Seq2[int, Finished] {
	return func(yield func(int, Finished) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var workers sync.WaitGroup
		defer workers.Wait()
		defer cancel()
		over := make([]chan Finished, len(tasks))
		for i := range over {
			over[i] = make(chan Finished, 1)
		}
		var next atomic.Int64
		for range max(1, parallel) {
			workers.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(tasks)); i = next.Add(1) - 1 {
					over[i] <- carryOut(ctx, program, tasks[i])
				}
			})
		}
		for i := range tasks {
			if !yield(i, <-over[i]) {
				return
			}
		}
	}
}
