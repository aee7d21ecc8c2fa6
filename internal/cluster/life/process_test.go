package life

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is a process of this machine.
type program struct {
	name string
	log  Log
	done chan struct{}
	err  error
}

func (p *program) Name() string          { return p.name }
func (p *program) Done() <-chan struct{} { return p.done }
func (p *program) Log() Log              { return p.log }
func (p *program) Epitaph() string {
	return fmt.Sprintf("%v; last lines of its log:\n%s", p.err, p.log.Tail(8))
}

// shell starts a process that is called kube-apiserver "a", with a log of its own.
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
	p := &program{name: `kube-apiserver "a"`, log: log, done: make(chan struct{})}
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

// ended is a process that has ended.
func ended(t *testing.T, logPath, script string) *program {
	t.Helper()
	p := shellInto(t, logPath, script)
	<-p.done
	return p
}

func unitOf(processes ...*program) *Unit[*program] {
	u := NewUnit[*program]()
	for _, p := range processes {
		u.Add(p)
	}
	return u
}
