package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func refused(context.Context) error { return errors.New("refused") }

func TestAProcessThatEndsBeforeItIsReadySaysWhy(t *testing.T) {
	p := shell(t, "echo 'no such flag: --peer' >&2; exit 3")
	err := groupOf(p).AwaitReady(t.Context(), p, time.Minute, refused)
	if err == nil {
		t.Fatal("a process that has ended was ready")
	}
	for _, want := range []string{`kube-apiserver "a"`, "exit status 3", "no such flag: --peer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestAwaitReadyGivesUpWithTheLastAnswer(t *testing.T) {
	p := shell(t, "echo starting; exec sleep 1000")
	err := groupOf(p).AwaitReady(t.Context(), p, 300*time.Millisecond, func(context.Context) error { return errors.New("503 Service Unavailable") })
	if err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") || !strings.Contains(err.Error(), "not ready after") {
		t.Fatalf("got %v, want an error with the last answer", err)
	}
}

func TestAwaitReadyEndsWithItsContext(t *testing.T) {
	p := shell(t, "exec sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := errors.New("interrupted")
	err := groupOf(p).AwaitReady(ctx, p, time.Hour, func(context.Context) error {
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
	err := groupOf(apiserver, sidecar).AwaitReady(t.Context(), sidecar, time.Minute, refused)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "etcd is gone") {
		t.Fatalf("got %v, want an error about the one that ended", err)
	}
}

// A group is over when its first process ends, and the other processes can still be found.
func TestAGroupIsOverWithItsFirstProcess(t *testing.T) {
	first, second := shell(t, "exit 3"), shell(t, "exec sleep 1000")
	g := groupOf(first, second)
	<-g.Over()
	if !g.Ended() || g.First() != first {
		t.Errorf("ended %v by %v", g.Ended(), g.First())
	}
	if living := g.Living(); !slices.Equal(living, []*program{second}) {
		t.Errorf("alive: %v, want the second", living)
	}
}

func TestAGroupOfNothingIsOver(t *testing.T) {
	g := NewGroup[*program]()
	if !g.Ended() {
		t.Error("it is not")
	}
	if err := g.AwaitEnd(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
}
