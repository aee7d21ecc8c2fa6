package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster/life"
)

// unitOf is a unit of processes.
func unitOf(processes ...*process) *unit {
	u := life.NewUnit[*process]()
	for _, p := range processes {
		u.Add(p)
	}
	return u
}

// trapping is a process that answers SIGTERM by writing its name into a file before it ends with a code. It returns once that is so.
func trapping(t *testing.T, name, code, file string) *process {
	t.Helper()
	p := shell(t, "trap 'echo "+name+" >> "+file+"; exit "+code+"' TERM; echo up; while :; do sleep 0.01; done")
	err := unitOf(p).Await(t.Context(), p, time.Minute, func(context.Context) error {
		if p.log.Tail(1) != "up" {
			return errors.New("not up")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStopEndsTheLastStartedFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "order")
	u := unitOf(trapping(t, "apiserver", "0", file), trapping(t, "sidecar", "0", file))
	if failed, err := stop(t.Context(), u, time.Minute); err != nil || failed != nil {
		t.Fatalf("stop: %v, failed: %v", err, failed)
	}
	order, err := os.ReadFile(file)
	if err != nil || string(order) != "sidecar\napiserver\n" {
		t.Errorf("they ended in the order %q, error %v", order, err)
	}
	if !u.Ended() {
		t.Error("the unit is not over")
	}
}

func TestStopTellsWhichDidNotEndWell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "order")
	apiserver, sidecar := trapping(t, "apiserver", "0", file), trapping(t, "sidecar", "7", file)
	failed, err := stop(t.Context(), unitOf(apiserver, sidecar), time.Minute)
	if err != nil || failed != sidecar || !strings.Contains(failed.Epitaph(), "exit status 7") {
		t.Fatalf("stop: %v, failed: %+v", err, failed)
	}
	if apiserver.err != nil {
		t.Errorf("the apiserver was not stopped, though its sidecar failed: %v", apiserver.err)
	}
}

func TestStopGivesUpOnAProcessThatWillNotEnd(t *testing.T) {
	p := shell(t, "trap 'echo no' TERM; echo up; while :; do sleep 0.01; done")
	u := unitOf(p)
	err := u.Await(t.Context(), p, time.Minute, func(context.Context) error {
		if p.log.Tail(1) != "up" {
			return errors.New("not up")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stop(t.Context(), u, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "still running 100ms after SIGTERM") {
		t.Errorf("got %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stop(cancelled, u, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestKillEndsEveryProcess(t *testing.T) {
	first, second := shell(t, "exec sleep 1000"), shell(t, "exec sleep 1000")
	u := unitOf(first, second)
	if u.Ended() {
		t.Fatal("it is over before it was ended")
	}
	if err := signal(u, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := kill(u); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*process{first, second} {
		select {
		case <-p.done:
		default:
			t.Error("a process is left")
		}
	}
	if !u.Ended() {
		t.Error("the unit is not over")
	}
	if err := kill(u); err != nil {
		t.Errorf("killed again: %v", err)
	}
}

func TestAUnitOfNothingCanBeKilled(t *testing.T) {
	if err := kill(life.NewUnit[*process]()); err != nil {
		t.Error(err)
	}
}
