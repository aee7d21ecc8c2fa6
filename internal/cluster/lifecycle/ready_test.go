package lifecycle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func refused(context.Context) error { return errors.New("refused") }

func TestAProcessThatEndsBeforeItIsReadySaysWhy(t *testing.T) {
	p := shell(t, "echo 'no such flag: --peer' >&2; exit 3")
	err := AwaitReady(t.Context(), p, time.Minute, refused)
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
	synctest.Test(t, func(t *testing.T) { // else its time might be over before it asks
		p := &runsOn{p, make(chan struct{})}
		err := AwaitReady(t.Context(), p, 300*time.Millisecond, func(context.Context) error { return errors.New("503 Service Unavailable") })
		if err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") || !strings.Contains(err.Error(), "not ready after") {
			t.Fatalf("got %v, want an error with the last answer", err)
		}
	})
}

// runsOn is a process that never ends. Its channel is made in a bubble of synctest, whose clock
// would stand still while a goroutine waits for a channel from outside.
type runsOn struct {
	*program
	never chan struct{}
}

func (r *runsOn) Done() <-chan struct{} { return r.never }

func TestAwaitReadyEndsWithItsContext(t *testing.T) {
	p := shell(t, "exec sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := errors.New("interrupted")
	err := AwaitReady(ctx, p, time.Hour, func(context.Context) error {
		cancel(asked)
		return errors.New("refused")
	})
	if !errors.Is(err, asked) {
		t.Fatalf("got %v, want %v", err, asked)
	}
}
