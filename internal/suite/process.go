package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// The exit codes of the program; see 'skewproof --help'.
const (
	codePass         = 0
	codeFail         = 1
	codeInconclusive = 2
	codeUsage        = 4
)

// How long a run that is told to end may take to end all that it began. Then it is killed. The kernel ends the rest of a sandbox; of a kind cluster
// nobody does, and its containers stay ('skewproof kind-clean').
const (
	goodbye     = 30 * time.Second
	kindGoodbye = 3 * time.Minute
)

// goodbyeOf is that of a run with those words.
func goodbyeOf(words []string) time.Duration {
	if i := slices.Index(words, "--backend"); i >= 0 && i+1 < len(words) && words[i+1] == scenario.BackendKind {
		return kindGoodbye
	}
	return goodbye
}

// interrupted is the problem of a run that was ended because all is to end.
const interrupted = "interrupted before there was a verdict"

// Program runs scenarios, each in a process of its own.
type Program struct {
	// Path is the executable.
	Path string
}

// Finished is what a run came to.
type Finished struct {
	// Code is the exit code; -1 if there was none.
	Code int
	// Report is what the run left; nil if it got nowhere.
	Report *reports.RunReport
	// Problem says why there is no verdict: what the run said last, or that it took too long or was interrupted. Empty for a run that was
	// judged.
	Problem string
	Took    time.Duration
}

// Run carries out one scenario: 'skewproof run' with the words, the first of which is the name, into dir, which must not exist or be empty.
// What the run says goes to dir with ".log" behind it. The run is ended, with all its processes, when ctx ends or limit has passed.
func (p Program) Run(ctx context.Context, limit time.Duration, dir string, words ...string) Finished {
	began := time.Now()
	finished := p.run(ctx, limit, dir, words)
	finished.Took = time.Since(began)
	return finished
}

func (p Program) run(ctx context.Context, limit time.Duration, dir string, words []string) Finished {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Finished{Code: -1, Problem: fmt.Sprintf("make a place for the run: %v", err)}
	}
	log, err := os.OpenFile(dir+".log", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return Finished{Code: -1, Problem: fmt.Sprintf("make a log of the run: %v", err)}
	}
	defer func() { _ = log.Close() }()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	words = append(append([]string{"run"}, words...), "--out", dir)
	fmt.Fprintf(log, "$ skewproof %s\n", strings.Join(words, " "))
	cmd := exec.CommandContext(limited, p.Path, words...)
	cmd.Stdout, cmd.Stderr = log, log
	err = runGently(cmd, goodbyeOf(words))
	f := Finished{Code: cmd.ProcessState.ExitCode()} // -1 for a process that never started, too
	if report, err := reports.Read(filepath.Join(dir, reports.JSONFile)); err == nil {
		f.Report = &report
	}
	var exit *exec.ExitError
	switch {
	case f.Report != nil && f.Code >= codePass && f.Code <= codeInconclusive: // even if it was told to end just then
	case ctx.Err() != nil:
		f.Problem = interrupted
	case limited.Err() != nil:
		f.Problem = fmt.Sprintf("not over after %s, and ended", limit)
	case err != nil && !errors.As(err, &exit):
		f.Problem = fmt.Sprintf("run it: %v", err)
	case f.Code < codePass || f.Code > codeInconclusive:
		f.Problem = fmt.Sprintf("exit code %d: %s", f.Code, lastSaid(log))
	case f.Report == nil:
		f.Problem = fmt.Sprintf("exit code %d, and no readable report", f.Code)
	}
	return f
}

// runGently runs a command, which the end of its context tells to end before it is killed.
func runGently(cmd *exec.Cmd, goodbye time.Duration) error {
	// A group of its own: Ctrl-C at a terminal would reach the command twice, and the second one means "at once". Should this process be
	// killed, the command is told to end; that signal comes when the *thread* that started the command ends (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = goodbye
	return cmd.Run()
}

// lastSaid is the error that a run ended with, or the last line that it said.
func lastSaid(log io.ReadSeeker) string {
	const enough = 4 << 10
	if end, err := log.Seek(0, io.SeekEnd); err != nil {
		return "its log cannot be read"
	} else if _, err := log.Seek(max(0, end-enough), io.SeekStart); err != nil {
		return "its log cannot be read"
	}
	said, err := io.ReadAll(log)
	if err != nil {
		return "its log cannot be read"
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if message, ok := strings.CutPrefix(lines[i], "skewproof: "); ok && !strings.HasPrefix(message, "stopping;") {
			return strings.Join(append([]string{message}, lines[i+1:]...), " ")
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return "it left no word in its log; is there no space left?"
}
