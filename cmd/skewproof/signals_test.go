package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A command started with nohup outlives its terminal, and one that a script put into the background
// a Ctrl-C; either can be ended all the same.
func TestASignalThatWasToBeIgnoredIs(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, ignored := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap "" `+name+` && exec "$0" "$@"`, self,
			"explore", "--policy", "reference", "--seeds", "1000000000", "--workers", "1", "--out", filepath.Join(t.TempDir(), "out"))
		cmd.Env = append(os.Environ(), programVariable+"=1")
		progress, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(progress)
		if !said.Scan() { // it is at work
			t.Fatalf("it said nothing: %v", said.Err())
		}
		if err := cmd.Process.Signal(ignored); err != nil {
			t.Fatal(err)
		}
		for range 2 { // how far it is, once a second; one line may have been on its way
			if said.Scan(); strings.Contains(said.Text(), "stopping") {
				t.Errorf("SIG%s counted: %s", name, said.Text())
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		var last string
		for said.Scan() {
			last += said.Text() + "\n"
		}
		_ = cmd.Wait()
		if !cmd.ProcessState.Exited() || !strings.Contains(last, "stopping") {
			t.Errorf("SIGTERM ended it so: %v; it said:\n%s", cmd.ProcessState, last)
		}
	}
}

// A held cluster is ended by a signal, or never: one that a shell lets its background jobs ignore
// counts too. Signals that nothing ignores have been taken care of already.
func TestAHeldClusterIsEndedByASignalThatWasToBeIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGUSR1)
	t.Cleanup(func() { signal.Reset(syscall.SIGUSR1) })
	ctx, cancel := endOnIgnored(t.Context(), syscall.SIGUSR1, syscall.SIGUSR2)
	defer cancel()
	if signal.Ignored(syscall.SIGUSR1) || signal.Ignored(syscall.SIGUSR2) {
		t.Fatal("a signal is ignored")
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-t.Context().Done():
		t.Error("the signal was ignored")
	}
	usual, cancel := endOnIgnored(context.Background(), syscall.SIGUSR2)
	if usual.Err() != nil {
		t.Error("a context ended without a signal")
	}
	cancel()
}
