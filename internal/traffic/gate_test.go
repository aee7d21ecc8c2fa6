package traffic

import (
	"context"
	"errors"
	"testing"
)

func TestGate(t *testing.T) {
	g := newGate()
	pass := func() func(error) {
		t.Helper()
		done, err := g.pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	full := func() error {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 0, errAttemptTimeout)
		defer cancel()
		done, err := g.pass(ctx)
		if err == nil {
			done(context.Canceled)
		}
		return err
	}

	var inside []func(error)
	for range maxConnecting {
		inside = append(inside, pass())
	}
	if err := full(); !errors.Is(err, errAttemptTimeout) {
		t.Errorf("one more than %d requests try to connect (error %v)", maxConnecting, err)
	}
	inside[0](errors.New("refused"))
	inside[0] = pass()

	type passed struct {
		done func(error)
		err  error
	}
	waiting := make(chan passed)
	go func() {
		done, err := g.pass(t.Context())
		waiting <- passed{done, err}
	}()
	inside[1](nil)
	waited := <-waiting
	if waited.err != nil {
		t.Fatalf("the gate opened, but a waiting request got %v", waited.err)
	}
	waited.done(nil) // it may have taken the place that became free, before the gate opened
	for range 3 * maxConnecting {
		inside = append(inside, pass())
	}
	inside[0](errors.New("reset"))
	for _, done := range inside[2:maxConnecting] {
		done(errors.New("reset"))
	}
	for range maxConnecting {
		pass()
	}
	if err := full(); err == nil {
		t.Error("the gate did not narrow after a failure")
	}
}
