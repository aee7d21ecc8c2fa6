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
	var set Set
	dial := func() (net.Conn, error) { return set.Dialer(&net.Dialer{})(t.Context(), "tcp", address) }
	kept, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	given, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	if err := given.Close(); err != nil || len(set.open) != 1 {
		t.Errorf("%d connections are known after one of two was closed (%v)", len(set.open), err)
	}
	set.Close()
	if _, err := kept.Write([]byte("x")); err == nil {
		t.Error("a connection survived")
	}
	if _, err := dial(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialled after all had been closed: %v, want %v", err, net.ErrClosed)
	}
	set.Close()
}

// Close ends a dial that is still running, however long it would take.
func TestCloseEndsWhatIsBeingDialled(t *testing.T) {
	address := listen(t)
	var set Set
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

// If a dial succeeds at the moment when the set is closed, its connection is closed too.
func TestWhatComesTooLateIsClosed(t *testing.T) {
	conn, err := net.Dial("tcp", listen(t))
	if err != nil {
		t.Fatal(err)
	}
	var set Set
	set.Close()
	if _, err := set.add(conn, "late"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("added with %v, want %v", err, net.ErrClosed)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing to it: %v, want %v", err, net.ErrClosed)
	}
}
