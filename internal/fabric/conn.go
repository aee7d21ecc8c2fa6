package fabric

import (
	"context"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// conn is one connection through a link: the accepted and the dialled socket, and the streams
// between them.
type conn struct {
	link   *link
	id     string
	pipes  [stream.NumDirections]*pipe
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	once       sync.Once // of end
	mu         sync.Mutex
	accepted   *net.TCPConn
	dialled    *net.TCPConn // nil until dialled
	over       bool
	pipesEnded int
}

type ending int

const (
	closing   ending = iota // FIN
	resetting               // RST
)

func newConn(ctx context.Context, l *link, id string, accepted *net.TCPConn) *conn {
	c := &conn{link: l, id: id, accepted: accepted}
	c.ctx, c.cancel = context.WithCancel(ctx)
	for d := range c.pipes {
		c.pipes[d] = &pipe{conn: c, direction: stream.Direction(d)}
	}
	return c
}

// attach gives the connection its dialled socket. It returns false if the connection has ended
// meanwhile.
func (c *conn) attach(dialled *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		drop(dialled)
		return false
	}
	c.dialled = dialled
	up, down := c.pipes[stream.Upstream], c.pipes[stream.Downstream]
	up.src, up.dst = c.accepted, dialled
	down.src, down.dst = dialled, c.accepted
	return true
}

// end ends the connection at both sides, once. credit says which tallies count the end (nil: none).
// They count it before either side can notice it, and before any call of end returns: a fault that
// is healed reads its tally after it has ended the connections that a toxic may be ending, too.
func (c *conn) end(how ending, credit func(*tally) bool) {
	c.once.Do(func() {
		c.mu.Lock()
		c.over = true
		accepted, dialled := c.accepted, c.dialled
		c.mu.Unlock()

		c.link.forget(c, credit)
		c.cancel()
		for _, side := range []*net.TCPConn{accepted, dialled} {
			switch {
			case side == nil:
			case how == resetting:
				drop(side)
			default:
				_ = side.Close()
			}
		}
	})
}

// pipeDone is called when a stream has been delivered to its end.
func (c *conn) pipeDone() {
	c.mu.Lock()
	c.pipesEnded++
	last := c.pipesEnded == len(c.pipes)
	c.mu.Unlock()
	if last {
		c.end(closing, nil)
	}
	c.link.running.Done()
}

// drop closes with a RST instead of a FIN (the ABORT call of RFC 9293 section 3.9.1).
func drop(side *net.TCPConn) {
	_ = side.SetLinger(0) // fails only on a closed socket
	_ = side.Close()
}
