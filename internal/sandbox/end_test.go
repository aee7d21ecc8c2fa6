package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubborn receives SIGTERM and does not end.
func stubborn() error {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGTERM)
	if err := setup(); err != nil {
		return err
	}
	fmt.Println("ready")
	for range heard {
	}
	return nil
}

// onWrite is a writer that calls a function and discards the data.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestKilledAfterGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, code, err := runCommand(ctx, t, "stubborn", Command{Stdout: onWrite(cancel), Grace: 50 * time.Millisecond})
	const want = "its first process did not end within 50ms and was killed"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("exit code %d, error %v, want one with %q; output:\n%s", code, err, want, out)
	}
}

func TestKilledByOthers(t *testing.T) {
	var killErr error
	out, code, err := runCommand(t.Context(), t, "stubborn", Command{
		Started: func(pid int) { killErr = syscall.Kill(pid, syscall.SIGKILL) },
	})
	if killErr != nil {
		t.Fatal(killErr)
	}
	const want = "first process was killed by SIGKILL; running out of memory is the usual reason"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("exit code %d, error %v, want one with %q; output:\n%s", code, err, want, out)
	}
}
