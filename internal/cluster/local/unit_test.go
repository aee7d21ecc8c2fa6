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
)

// unitOf is a unit of processes.
func unitOf(processes ...*process) *unit {
	u := newUnit()
	for _, p := range processes {
		u.add(p)
	}
	return u
}

func TestAProcessThatEndsBeforeItIsReadySaysWhy(t *testing.T) {
	p := shell(t, "echo 'no such flag: --peer' >&2; exit 3")
	err := unitOf(p).await(t.Context(), p, time.Minute, func(context.Context) error { return errors.New("refused") })
	if err == nil {
		t.Fatal("a process that has ended was ready")
	}
	for _, want := range []string{`kube-apiserver "a"`, "exit status 3", "no such flag: --peer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestAwaitGivesUpWithTheLastAnswer(t *testing.T) {
	p := shell(t, "echo starting; sleep 1000")
	err := unitOf(p).await(t.Context(), p, 300*time.Millisecond, func(context.Context) error { return errors.New("503 Service Unavailable") })
	if err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") || !strings.Contains(err.Error(), "not ready after") {
		t.Fatalf("got %v, want an error with the last answer", err)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	p := shell(t, "sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := errors.New("interrupted")
	err := unitOf(p).await(ctx, p, time.Hour, func(context.Context) error {
		cancel(asked)
		return errors.New("refused")
	})
	if !errors.Is(err, asked) {
		t.Fatalf("got %v, want %v", err, asked)
	}
}

func TestAProcessThatDiesTakesTheWaitForAnotherWithIt(t *testing.T) {
	apiserver := shell(t, "echo 'etcd is gone' >&2; exit 1")
	sidecar := shell(t, "exec sleep 1000")
	err := unitOf(apiserver, sidecar).await(t.Context(), sidecar, time.Minute, func(context.Context) error { return errors.New("refused") })
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "etcd is gone") {
		t.Fatalf("got %v, want an error about the one that ended", err)
	}
}

// trapping is a process that answers SIGTERM by writing its name into a file before it ends with a code. It returns once that is so.
func trapping(t *testing.T, name, code, file string) *process {
	t.Helper()
	p := shell(t, "trap 'echo "+name+" >> "+file+"; exit "+code+"' TERM; echo up; while :; do sleep 0.01; done")
	err := unitOf(p).await(t.Context(), p, time.Minute, func(context.Context) error {
		if p.tail(1) != "up" {
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
	if failed, err := u.stop(t.Context(), time.Minute); err != nil || failed != nil {
		t.Fatalf("stop: %v, failed: %v", err, failed)
	}
	order, err := os.ReadFile(file)
	if err != nil || string(order) != "sidecar\napiserver\n" {
		t.Errorf("they ended in the order %q, error %v", order, err)
	}
	if !u.ended() {
		t.Error("the unit is not over")
	}
}

func TestStopTellsWhichDidNotEndWell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "order")
	apiserver, sidecar := trapping(t, "apiserver", "0", file), trapping(t, "sidecar", "7", file)
	failed, err := unitOf(apiserver, sidecar).stop(t.Context(), time.Minute)
	if err != nil || failed != sidecar || !strings.Contains(failed.epitaph(), "exit status 7") {
		t.Fatalf("stop: %v, failed: %+v", err, failed)
	}
	if apiserver.err != nil {
		t.Errorf("the apiserver was not stopped, though its sidecar failed: %v", apiserver.err)
	}
}

func TestStopGivesUpOnAProcessThatWillNotEnd(t *testing.T) {
	p := shell(t, "trap 'echo no' TERM; echo up; while :; do sleep 0.01; done")
	u := unitOf(p)
	err := u.await(t.Context(), p, time.Minute, func(context.Context) error {
		if p.tail(1) != "up" {
			return errors.New("not up")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.stop(t.Context(), 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "still running 100ms after SIGTERM") {
		t.Errorf("got %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.stop(cancelled, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestKillEndsEveryProcess(t *testing.T) {
	first, second := shell(t, "exec sleep 1000"), shell(t, "exec sleep 1000")
	u := unitOf(first, second)
	if u.ended() {
		t.Fatal("it is over before it was ended")
	}
	if err := u.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := u.kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*process{first, second} {
		select {
		case <-p.done:
		default:
			t.Error("a process is left")
		}
	}
	if !u.ended() {
		t.Error("the unit is not over")
	}
	if err := u.kill(); err != nil {
		t.Errorf("killed again: %v", err)
	}
}

func TestAUnitOfNothingIsOver(t *testing.T) {
	u := newUnit()
	if !u.ended() {
		t.Error("it is not")
	}
	if err := u.kill(); err != nil {
		t.Error(err)
	}
}
