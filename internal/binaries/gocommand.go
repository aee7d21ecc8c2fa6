package binaries

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

type goCommand struct {
	path string
	dir  string
	tmp  string // for what go itself would leave in the system's temporary directory if it were killed
}

// run returns what go wrote to standard output. The error ends with the last lines of its standard
// error. When ctx ends, go and everything it has started are killed.
func (g goCommand) run(ctx context.Context, args ...string) ([]byte, error) {
	// Files and not pipes: Run would wait until the last grandchild has closed a pipe.
	stdout, err := os.Create(filepath.Join(g.tmp, "stdout"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = stdout.Close() }()
	stderr, err := os.Create(filepath.Join(g.tmp, "stderr"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = stderr.Close() }()

	cmd := exec.CommandContext(ctx, g.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, stdout, stderr
	cmd.Env = append(cmd.Environ(), g.environment()...)
	err = runGroup(cmd)
	out, readErr := os.ReadFile(stdout.Name())
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if err != nil {
		output, _ := os.ReadFile(stderr.Name())
		return out, &goError{verb: verb(args), err: err, output: string(output)}
	}
	return out, readErr
}

// environment sets what would change the outcome. Everything else is the user's, above all GOPROXY,
// GOSUMDB and GOTOOLCHAIN.
func (g goCommand) environment() []string {
	return []string{
		"CGO_ENABLED=0",
		"GO111MODULE=on",
		"GOARCH=" + runtime.GOARCH,
		"GOFLAGS=-mod=mod", // go.mod is written without the indirect requirements
		"GOOS=" + runtime.GOOS,
		"GOTMPDIR=" + g.tmp,
		"GOWORK=off",
	}
}

// verb is what an error calls a go command: its arguments up to the first flag.
func verb(args []string) string {
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
		args = args[:i]
	}
	return strings.Join(args, " ")
}

type goError struct {
	verb   string
	err    error
	output string // on standard error
}

const tailLines = 20

func (e *goError) Error() string {
	lines := strings.Split(strings.TrimSpace(e.output), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Sprintf("go %s: %v; its last lines:\n%s", e.verb, e.err, strings.Join(lines, "\n"))
}

func (e *goError) Unwrap() error { return e.err }

// runGroup runs a command in a process group of its own, which is killed when its context ends: go does not pass a signal
// on to the compilers that it has started. It is killed outright, since the Go caches are made to survive that, and the
// temporary files are in a directory that is removed.
func runGroup(cmd *exec.Cmd) error {
	// The parent-death signal is for the kill -9 of this process, and comes when the *thread* that started the child
	// ends (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.Run()
}
