package traffic

import (
	"context"
	"net"
	"testing"
)

func TestConnectionsCloseForCertain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	dial := func(c *connections) (net.Conn, error) {
		return c.dial(context.Background(), "tcp", listener.Addr().String())
	}
	var conns connections
	kept, err := dial(&conns)
	if err != nil {
		t.Fatal(err)
	}
	given, err := dial(&conns)
	if err != nil {
		t.Fatal(err)
	}
	if err := given.Close(); err != nil || len(conns.open) != 1 {
		t.Errorf("%d connections are known after one of two was closed (%v)", len(conns.open), err)
	}
	conns.closeAll()
	if _, err := kept.Write([]byte("x")); err == nil {
		t.Error("a connection survived")
	}
	if _, err := dial(&conns); err == nil {
		t.Error("a connection was made after all had been closed")
	}
	conns.closeAll()
}
