package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pauseEnv makes the test binary pause, with a child that lives as long as its standard input.
const pauseEnv = "SKEWPROOF_TEST_PAUSE"

func TestMain(m *testing.M) {
	if os.Getenv(pauseEnv) == "" {
		os.Exit(m.Run())
	}
	child := exec.Command("cat")
	child.Stdin = os.Stdin
	if err := child.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(child.Process.Pid)
	main()
	os.Exit(0)
}

// An orphaned process that is not reaped stays a zombie for as long as the pod lives.
func TestPause(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), pauseEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child := filepath.Join("/proc", strings.TrimSpace(pid))
	if _, err := os.Stat(child); err != nil {
		t.Fatalf("its child: %v", err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for _, err := os.Stat(child); !os.IsNotExist(err); _, err = os.Stat(child) {
		<-ticker.C // go test's own time limit ends it
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to stop: %v", err)
	}
}
