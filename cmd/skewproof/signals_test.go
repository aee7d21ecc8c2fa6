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

// A command started with nohup survives the end of its terminal. A command in the background of a
// script survives a Ctrl-C. SIGTERM still ends both.
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
		if !said.Scan() { // after its first output, the command is working
			t.Fatalf("it said nothing: %v", said.Err())
		}
		if err := cmd.Process.Signal(ignored); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the command prints its progress once a second; one line may have been written before the signal
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

// Only a signal ends a held cluster. So a signal that a shell makes its background jobs ignore must
// end it too. Other code already handles signals that are not ignored.
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
