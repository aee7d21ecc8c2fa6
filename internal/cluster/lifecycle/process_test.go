package lifecycle

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// program is a process on this machine.
type program struct {
	name string
	cmd  *exec.Cmd
	log  Log
	done chan struct{}
	err  error
}

func (p *program) Name() string          { return p.name }
func (p *program) Done() <-chan struct{} { return p.done }
func (p *program) Log() Log              { return p.log }
func (p *program) Exit() (string, bool)  { return p.cmd.ProcessState.String(), p.err == nil }

// shell starts a process with the name kube-apiserver "a" and its own log.
func shell(t *testing.T, script string) *program {
	t.Helper()
	return shellInto(t, filepath.Join(t.TempDir(), "a.log"), script)
}

func shellInto(t *testing.T, logPath, script string) *program {
	t.Helper()
	file, log, err := OpenLog(logPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{name: `kube-apiserver "a"`, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
	})
	return p
}

// ended returns a process that has ended.
func ended(t *testing.T, logPath, script string) *program {
	t.Helper()
	p := shellInto(t, logPath, script)
	<-p.done
	return p
}

// recording keeps all records.
type recording struct {
	mu      sync.Mutex
	entries []history.Lifecycle
	flags   []history.Configuration
}

func (r *recording) Lifecycle(l history.Lifecycle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, l)
}
func (r *recording) Configuration(c history.Configuration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flags = append(r.flags, c)
}
func (r *recording) Now() history.Time { return time.Second }

// states returns the recorded states, in order.
func (r *recording) states() []history.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []history.State
	for _, e := range r.entries {
		all = append(all, e.State)
	}
	return all
}

// signals is a backend that signals processes on this machine, and starts the given program.
type signals struct{ program Program[*program] }

func (b *signals) Program(string) (Program[*program], error) { return b.program, nil }

func (b *signals) Terminate(ctx context.Context, p *program, _ string) error {
	return b.Signal(ctx, p, syscall.SIGTERM)
}

func (b *signals) KillProcess(ctx context.Context, p *program) error {
	return b.Signal(ctx, p, syscall.SIGKILL)
}

func (b *signals) Signal(_ context.Context, p *program, signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && err != os.ErrProcessDone {
		return err
	}
	return nil
}

func serverOf(t *testing.T) (*Server[*program], *recording) {
	r := &recording{}
	config := &Config{Recorder: r, Status: t.Logf, ReadyTimeout: time.Minute, StopTimeout: time.Minute, Context: t.Context()}
	return &Server[*program]{Config: config, Name: "a", Version: "v1.37.1", Backend: &signals{}}, r
}
