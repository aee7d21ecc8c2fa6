package connections

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
)

func listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestConnectionsCloseForCertain(t *testing.T) {
	address := listen(t)
	set := New()
	dial := func() (net.Conn, error) { return set.Dialer(&net.Dialer{})(t.Context(), "tcp", address) }
	kept, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	given, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	if err := given.Close(); err != nil {
		t.Errorf("closing one of two: %v", err)
	}
	set.Close()
	if _, err := kept.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) { // nobody writes
		t.Errorf("a connection survived: %v", err)
	}
	if _, err := dial(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialled after all had been closed: %v, want %v", err, net.ErrClosed)
	}
	set.Close()
}

// Close ends a dial that is still running, however long it would take.
func TestCloseEndsWhatIsBeingDialled(t *testing.T) {
	address := listen(t)
	set := New()
	dialling := make(chan struct{})
	dialer := &net.Dialer{ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
		close(dialling)
		<-ctx.Done()
		return ctx.Err()
	}}
	dialled := make(chan error, 1)
	go func() {
		_, err := set.Dialer(dialer)(t.Context(), "tcp", address)
		dialled <- err
	}()
	<-dialling
	set.Close()
	if err := <-dialled; !errors.Is(err, context.Canceled) {
		t.Errorf("dialling ended with %v, want %v", err, context.Canceled)
	}
}
