// Package connections keeps track of a client's connections, so that all of them can be closed.
//
// [net/http.Transport] closes only idle connections. It does not close an HTTP/2 connection whose
// last request was just cancelled, or a connection that is being dialled for a cancelled request.
package connections

import (
	"context"
	"fmt"
	"net"
)

// Set is the set of connections of one client. Make it with [New]. It is safe for concurrent use.
type Set struct {
	life context.Context // ends with the set
	end  context.CancelFunc
}

// New returns an empty set.
func New() *Set {
	life, end := context.WithCancel(context.Background())
	return &Set{life, end}
}

// tracked is a connection that ends with its set.
type tracked struct {
	net.Conn
	forget func() bool
}

// Dialer returns a DialContext for a [net/http.Transport] that dials with d and adds the connection
// to the set. After [Set.Close] its error wraps [net.ErrClosed].
func (s *Set) Dialer(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if s.life.Err() != nil {
			return nil, fmt.Errorf("dial %s: this client is closed: %w", address, net.ErrClosed)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tracked{conn, context.AfterFunc(s.life, func() { _ = conn.Close() })}, nil
	}
}

func (t *tracked) Close() error {
	t.forget()
	return t.Conn.Close()
}

// Close closes every connection, soon after it returns, and cancels every dial. It may be called
// repeatedly.
func (s *Set) Close() { s.end() }
