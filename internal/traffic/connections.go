package traffic

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// connections knows every connection of one client, so that they can be closed for certain. Closing the idle ones, all
// that http.Transport offers, is not certain: an HTTP/2 connection counts as busy for a moment after its last request
// was cancelled, and one that is still being dialled for a request that has given up is of no concern to it.
type connections struct {
	mu     sync.Mutex
	open   map[*trackedConn]bool
	closed bool
}

type trackedConn struct {
	net.Conn
	of *connections
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second} // as client-go's own
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return nil, errors.New("dial: the traffic clients are closed")
	}
	tracked := &trackedConn{conn, c}
	if c.open == nil {
		c.open = map[*trackedConn]bool{}
	}
	c.open[tracked] = true
	return tracked, nil
}

// Close implements [net.Conn].
func (c *trackedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// closeAll closes what is open and whatever is still being dialled.
func (c *connections) closeAll() {
	c.mu.Lock()
	open := c.open
	c.open, c.closed = nil, true
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Conn.Close()
	}
}
