// Package connections keeps track of every connection of a client, so that all can be closed.
//
// [net/http.Transport] can only close idle connections, which misses some: an HTTP/2 connection counts as busy for a moment after its last
// request was cancelled, and a connection that is still being dialled for a cancelled request is not tracked.
package connections

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Set is the connections of one client. The zero value is empty and ready to use. It is safe for concurrent use.
type Set struct {
	mu     sync.Mutex
	life   context.Context // of dialling; nil before the first
	end    context.CancelFunc
	open   map[*tracked]struct{}
	closed bool
}

type tracked struct {
	net.Conn
	of *Set
}

// Dialer returns a function that dials with d and adds the connection to the set, for DialContext of a [net/http.Transport]. After
// [Set.Close] it returns an error that wraps [net.ErrClosed].
func (s *Set) Dialer(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return s.dial(ctx, d, network, address)
	}
}

func (s *Set) dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
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

// begin returns the context that ends with the set.
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

// Close implements [net.Conn].
func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.open, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}

// Close closes every connection and cancels every dial. It may be called more than once.
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
