package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type goCommand struct {
	path string
	dir  string
	tmp  string // temporary directory of go, because a killed go command leaves files there
}

// run runs go and returns its standard output. An error ends with the last lines of its standard
// error. When ctx ends, run kills go and all its children.
func (g goCommand) run(ctx context.Context, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, g.path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, &stdout, &stderr
	cmd.Env = append(cmd.Environ(), g.environment()...)
	err := runGroup(cmd)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = &goError{verb: verb(args), err: err, output: stderr.String()}
	}
	return stdout.Bytes(), err
}

// environment returns the user's environment with fixed values for the variables that would change
// the result. GOPROXY, GOSUMDB and others stay the user's.
func (g goCommand) environment() []string {
	fixed := []string{
		"CGO_ENABLED=0",
		"GO111MODULE=on",
		"GOARCH=" + runtime.GOARCH,
		"GOFLAGS=-mod=mod", // go.mod is written without the indirect requirements
		"GOOS=" + runtime.GOOS,
		"GOTMPDIR=" + g.tmp,
		"GOWORK=off",
	}
	return append(fixed, collector(AvailableMemory(), runtime.NumCPU())...)
}

// These are the bounds of the memory in which a compiler or a linker collects no garbage. The
// linker of a kube-apiserver has 1.5 GB of live memory, the compiler of its largest package 0.5 GB.
const (
	leastUncollected = 1 << 30
	mostUncollected  = 2 << 30
)

// collector returns the settings of the garbage collector for go and the programs that it starts.
// As long as there is enough memory, they collect no garbage, because most of them end before they
// need much. This takes a sixth less time, and changes nothing in the result. go starts as many of
// them at once as there are processors. The settings of the user take precedence.
func collector(available uint64, processors int) []string {
	limit := min(available/uint64(processors+1), mostUncollected)
	if limit < leastUncollected || os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return []string{"GOGC=off", fmt.Sprintf("GOMEMLIMIT=%d", limit)}
}

// verb returns the name of a go command for errors: its arguments up to the first flag.
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
	return fmt.Sprintf("go %s: %v; its last lines:\n%s", e.verb, e.err, lastLines(e.output))
}

// lastLines are the last lines of an output.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

func (e *goError) Unwrap() error { return e.err }

// runGroup runs a command in its own process group. When the context of the command ends, runGroup
// kills the whole group, because go does not pass signals on to its compilers. SIGKILL is safe: the
// Go caches are made for it, and the caller removes the temporary files.
func runGroup(cmd *exec.Cmd) error {
	// Pdeathsig is for a kill -9 of this process. The kernel sends it when the *thread* that
	// started the child ends (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a grandchild may keep the pipes open
	return cmd.Run()
}
