package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/life"
)

// process is one running program with its output in a log file.
type process struct {
	name string
	cmd  *exec.Cmd
	log  life.Log
	done chan struct{}
	err  error // valid once done is closed
}

var _ life.Process = (*process)(nil)

// startProcess starts path with args by way of start, which is cmd.Start or a host's own.
func startProcess(name, path string, args []string, logPath string, start func(*exec.Cmd) error) (*process, error) {
	file, log, err := life.OpenLog(logPath)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"} // nothing of the user's environment, no proxies
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Name and the others implement [life.Process].
func (p *process) Name() string          { return p.name }
func (p *process) Done() <-chan struct{} { return p.done }
func (p *process) Log() life.Log         { return p.log }

// Epitaph tells the exit status too.
func (p *process) Epitaph() string {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	if tail := p.log.Tail(8); tail != "" {
		return how + "; last lines of its log:\n" + tail
	}
	return how + "; its log is empty"
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", s, p.name, err)
	}
	return nil
}

// stop asks the process to end gracefully and waits until it has.
func (p *process) stop(ctx context.Context, limit time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", p.name, context.Cause(ctx))
	case <-over.C:
		return fmt.Errorf("stop %s: still running %s after SIGTERM; last lines of its log:\n%s", p.name, limit, p.log.Tail(8))
	}
}
