// Package connections keeps track of a client's connections, so that all of them can be closed.
//
// [net/http.Transport] closes only idle connections. It does not close an HTTP/2 connection whose
// last request was just cancelled, or a connection that is being dialled for a cancelled request.
package connections

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Set is the set of connections of one client. The zero value is empty and usable. It is safe for
// concurrent use.
type Set struct {
	mu     sync.Mutex
	life   context.Context // the context of dialling; nil before the first dial
	end    context.CancelFunc
	open   map[*tracked]struct{}
	closed bool
}

type tracked struct {
	net.Conn
	of *Set
}

// Dialer returns a DialContext for a [net/http.Transport] that dials with d and adds the connection
// to the set. After [Set.Close] its error wraps [net.ErrClosed].
func (s *Set) Dialer(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		life, err := s.begin(address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return s.add(conn, address)
	}
}

// begin returns a context that ends with the set.
func (s *Set) begin(address string) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed(address)
	}
	if s.life == nil {
		s.life, s.end = context.WithCancel(context.Background())
	}
	return s.life, nil
}

func (s *Set) add(conn net.Conn, address string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return nil, errClosed(address)
	}
	if s.open == nil {
		s.open = map[*tracked]struct{}{}
	}
	t := &tracked{conn, s}
	s.open[t] = struct{}{}
	return t, nil
}

func errClosed(address string) error {
	return fmt.Errorf("dial %s: this client is closed: %w", address, net.ErrClosed)
}

func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.open, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}

// Close closes every connection and cancels every dial. It may be called repeatedly.
func (s *Set) Close() {
	s.mu.Lock()
	open := s.open
	s.open, s.closed = nil, true
	if s.end != nil {
		s.end()
	}
	s.mu.Unlock()
	for t := range open { // in any order
		_ = t.Conn.Close()
	}
}
