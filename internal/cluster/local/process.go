package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is one running program with its output in a log file.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	logFrom int64 // where this process's output begins in the log, which several incarnations share
	done    chan struct{}
	err     error // valid once done is closed
}

// startProcess starts path with args by way of start, which is cmd.Start or a host's own.
func startProcess(name, path string, args []string, logPath string, start func(*exec.Cmd) error) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"} // nothing of the user's environment, no proxies
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, logPath: logPath, logFrom: from, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
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
		return fmt.Errorf("stop %s: still running %s after SIGTERM; last lines of its log:\n%s", p.name, limit, p.tail(8))
	}
}

// epitaph says how an ended process ended, with the last lines of its log.
func (p *process) epitaph() string {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	if tail := p.tail(8); tail != "" {
		return how + "; last lines of its log:\n" + tail
	}
	return how + "; its log is empty"
}

func (p *process) tail(lines int) string {
	log, err := readFrom(p.logPath, p.logFrom)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func readFrom(path string, offset int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
