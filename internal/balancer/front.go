package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Front accepts connections and forwards them to the backends of a pool. The zero value with a pool
// is ready. Its methods may be called by one goroutine only.
type Front struct {
	Pool *Pool
	// MaxAge is the age at which a connection is closed, in use or not, like Envoy's
	// max_downstream_connection_duration; 0: never. Without it, an HTTP/2 client stays at one
	// server.
	MaxAge   time.Duration
	address  string
	listener net.Listener
}

// Listen makes the front listen at host:port, and nowhere else. An empty or unchanged address
// changes nothing.
func (f *Front) Listen(address string) error {
	if address == "" || address == f.address {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the load balancer: %w", err)
	}
	f.Close()
	f.address, f.listener = address, l
	f.Pool.logf("listening at %s", l.Addr())
	go f.accept(l)
	return nil
}

// Close stops listening. Open connections stay.
func (f *Front) Close() {
	if f.listener != nil {
		_ = f.listener.Close()
	}
}

// acceptPause is how long the front waits after Accept fails, for example because of too many open
// files. Trying again at once would take a whole CPU.
const acceptPause = 50 * time.Millisecond

func (f *Front) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			f.Pool.logf("accept a connection: %v", err)
			time.Sleep(acceptPause)
			continue
		}
		go f.serve(conn.(*net.TCPConn))
	}
}

// serve forwards bytes in both directions until both sides have ended.
func (f *Front) serve(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	conn, err := f.Pool.dial(context.Background())
	if err != nil {
		f.Pool.logf("%v", err)
		return
	}
	server := conn.(*net.TCPConn)
	defer func() { _ = server.Close() }()
	if f.MaxAge > 0 {
		aged := time.AfterFunc(f.MaxAge, func() {
			_ = client.Close()
			_ = server.Close()
		})
		defer aged.Stop()
	}
	var wg sync.WaitGroup
	wg.Go(func() { pass(server, client) })
	wg.Go(func() { pass(client, server) })
	wg.Wait()
}

// pass copies one direction. It forwards a clean end. After an error it closes both connections, so
// that the other direction ends too.
func pass(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	_ = to.CloseWrite()
}
