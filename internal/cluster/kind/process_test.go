package kind

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// engineOf puts a program in the place of Docker's client, which is run in an empty directory.
func engineOf(t *testing.T, lines string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+lines), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Chdir(t.TempDir())
}

// A server has crashed if its process has ended, and not if the engine could not be asked for a
// short time.
func TestAProcessHasEndedWhenItsNodeSaysSo(t *testing.T) {
	// inside runs the command that 'exec --privileged NODE COMMAND…' would run in a node.
	const inside = "shift 3; exec \"$@\"\n"
	for name, c := range map[string]struct {
		engine string
		pid    string
		want   bool
	}{
		"it runs":                         {inside, "self", true},
		"it has ended":                    {inside, "none", false},
		"it runs, and the engine is busy": {"[ -e asked ] || { touch asked; exit 126; }\n" + inside, "self", true},
		"the node is gone":                {"exit 1\n", "self", false},
	} {
		t.Run(name, func(t *testing.T) {
			engineOf(t, c.engine)
			p := &process{node: "node", pid: c.pid}
			if got := p.runs(t.Context(), 2*time.Second); got != c.want {
				t.Errorf("it is said to run: %v, want %v", got, c.want)
			}
		})
	}
}

// A kubelet may take minutes to restart a crashed server. The end of a run must not wait for that.
func TestTheEndDoesNotWaitForACrashedServerToComeBack(t *testing.T) {
	t.Run("over", func(t *testing.T) { endWhileRestarting(t, (*Cluster).RecordPanics) })
	t.Run("broken off", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		endWhileRestarting(t, func(c *Cluster) {
			done := make(chan error)
			go func() { done <- c.Start(ctx) }() // as far as it gets
			interrupt()
			if <-done == nil {
				t.Error("a cluster has come up")
			}
			_ = c.StopServer(t.Context(), "a") // as a step does; its server does not run
		})
	})
}

func endWhileRestarting(t *testing.T, end func(*Cluster)) {
	t.Helper()
	dir := t.TempDir()
	c, err := New(Config{Name: "skewproof-test", Servers: []history.Server{{Name: "a", Version: "v1.36.3"}}, Files: Files{Keys: dir, Nodes: dir, Logs: dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.cancel()
	engineOf(t, "echo >asked; exec sleep 300\n") // longer than any kubelet is waited for
	if err := syscall.Mkfifo("asked", 0o600); err != nil {
		t.Fatal(err)
	}
	s := c.Servers[0]
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		_ = s.Adopt(c.lifecycle.Restarts) // as when it has crashed
	}()
	if _, err := os.ReadFile("asked"); err != nil { // until the engine is asked for the server's process
		t.Fatal(err)
	}
	end(c)
	if c.lifecycle.Restarts.Err() == nil {
		t.Error("it was waited for")
	}
	<-restarted
}
