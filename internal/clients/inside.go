package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
)

// Inside runs clients in the sandbox of a run that is held, by 'skewproof shell', which gives it
// the kubeconfig.
type Inside struct {
	// Program is skewproof, and Dir the directory of the run.
	Program, Dir string
	// Clients are the paths of the programs.
	Clients map[binaries.Ref]string
}

// killGrace is how long a command may take to end after a signal, before it is killed.
const killGrace = 5 * time.Second

// Run implements [Runner].
func (r Inside) Run(ctx context.Context, i Invocation) (Ended, error) {
	ref := binaries.Ref{Component: binaries.Component(i.Program), Version: binaries.Version(i.Version)}
	path, ok := r.Clients[ref]
	if !ok {
		return Ended{}, fmt.Errorf("there is no %s", ref)
	}
	if err := os.MkdirAll(i.Home, 0o700); err != nil {
		return Ended{}, fmt.Errorf("make a home directory for %s: %w", i.Program, err)
	}
	limited, cancel := context.WithTimeout(ctx, i.Limit)
	defer cancel()
	cmd := exec.CommandContext(limited, r.Program, append([]string{"shell", r.Dir, "--", path}, i.Words...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + i.Home, "KUBE_EDITOR=" + i.Editor, "LC_ALL=C", "TZ=UTC"}
	cmd.Stdin = strings.NewReader(i.Input)
	var problem bytes.Buffer
	output := &watched{seen: i.Seen, enough: cancel}
	cmd.Stdout, cmd.Stderr = output, &problem
	// A separate process group, so that nsenter, its shell and the client end together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	err := cmd.Run()
	ended := Ended{Output: output.text.String(), Problem: problem.String(), Enough: output.was}
	if cmd.ProcessState == nil { // it never started
		return ended, err
	}
	ended.Code = cmd.ProcessState.ExitCode()
	ended.TooLong = limited.Err() != nil && ctx.Err() == nil && !ended.Enough
	return ended, notStarted(ended)
}

// notStarted is what 'skewproof shell' says if it could not start the client; else nil.
func notStarted(e Ended) error {
	if e.Enough {
		return nil
	}
	said := FirstLine(e.Problem)
	for _, by := range []string{"skewproof: ", "nsenter: ", "sh: "} { // each of these starts the next one
		if message, ok := strings.CutPrefix(said, by); ok {
			return errors.New(message)
		}
	}
	return nil
}

// watched is an output that can be read while it grows. Only one goroutine calls its methods, that
// of the command, until the command ends. It has only Write, because io.Copy would use ReadFrom
// instead, which a bytes.Buffer has.
type watched struct {
	text   bytes.Buffer
	seen   func(string) bool
	enough func()
	was    bool
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if w.seen != nil && !w.was && w.seen(w.text.String()) {
		w.was = true
		w.enough()
	}
	return n, err
}
