package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
)

// LinkStatus is the state and the totals of a link. The totals count from the creation of the link.
type LinkStatus struct {
	Name string `json:"name"` // of the toxiproxy proxy: "a-to-b"
	From string `json:"from"`
	To   string `json:"to"`
	// Enabled is false while the link is cut, by a fault or through toxiproxy's API.
	Enabled bool `json:"enabled"`
	// Accepted counts connections that were let in. Refused counts connections that met a disabled
	// link.
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"`
	// Unreachable counts accepted connections that the destination did not accept.
	Unreachable int `json:"unreachable"`
	// Open is the number of accepted connections that have not ended.
	Open int `json:"open"`
	// BytesUp and BytesDown count the bytes delivered to To and to From.
	BytesUp   int64 `json:"bytesUp"`
	BytesDown int64 `json:"bytesDown"`
}

// link carries the connections from one source to one destination through the toxics of one
// toxiproxy proxy. The proxy says whether the link is enabled and where it leads, so that changes
// through toxiproxy's API take effect. The listener of the proxy is not used, see pipe.go.
type link struct {
	from, to string
	proxy    *toxiproxy.Proxy
	server   *toxiproxy.ApiServer
	dialer   *net.Dialer
	running  *sync.WaitGroup // the streams of all links

	bytes  [stream.NumDirections]atomic.Int64
	serial atomic.Uint64

	// configuring is held while faults of this link are injected or healed.
	configuring sync.Mutex
	cuts        int // active cuts; guarded by configuring

	mu                             sync.Mutex
	closed                         bool
	open                           map[*conn]struct{}
	tallies                        map[*tally]struct{}
	accepted, refused, unreachable int
}

// serve forwards a connection. It returns when both streams are set up, or on failure.
func (l *link) serve(ctx context.Context, accepted *net.TCPConn) {
	c := newConn(ctx, l, fmt.Sprintf("%s-%d-", accepted.RemoteAddr(), l.serial.Add(1)), accepted)
	// First register, then check: disabling a link resets only registered connections.
	if !l.register(c) {
		c.end(resetting, nil)
		return
	}
	enabled, upstream := l.state()
	if !enabled {
		l.count(&l.refused)
		c.end(resetting, nil)
		return
	}
	l.count(&l.accepted)
	dialled, err := l.dialer.DialContext(c.ctx, "tcp", upstream)
	if err != nil {
		if c.ctx.Err() == nil {
			l.count(&l.unreachable)
		}
		c.end(resetting, nil)
		return
	}
	if !c.attach(dialled.(*net.TCPConn)) {
		return
	}
	l.running.Add(len(c.pipes))
	l.proxy.Lock() // StartLink reads the proxy's addresses, which change when the proxy is enabled
	defer l.proxy.Unlock()
	// These names are our own and used only once. toxiproxy's own name is the address of the
	// client. This address can occur again while the old connection is still closing; then one of
	// the two connections misses further toxics.
	for d, h := range c.pipes {
		direction := stream.Direction(d)
		l.proxy.Toxics.StartLink(l.server, c.id+direction.String(), inlet{h}, outlet{h}, direction)
	}
}

func (l *link) register(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *link) count(counter *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*counter++
}

// forget removes a connection that ends from the list of open ones. credit says which tallies count
// its end.
func (l *link) forget(c *conn, credit func(*tally) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.tallies {
		if credit != nil && credit(w) {
			w.cut++
		}
		w.leave(c)
	}
	delete(l.open, c)
}

// breakOpen resets the open connections that match (nil: all), and credits w unless it is nil.
func (l *link) breakOpen(w *tally, match func(*conn) bool) {
	l.mu.Lock()
	var matching []*conn
	for c := range l.open {
		if match == nil || match(c) {
			matching = append(matching, c)
		}
	}
	l.mu.Unlock()
	l.reset(w, matching)
}

func (l *link) reset(w *tally, conns []*conn) {
	for _, c := range conns {
		c.end(resetting, func(other *tally) bool { return other == w })
	}
}

// state returns whether the link is enabled and where it leads, according to the proxy.
func (l *link) state() (enabled bool, upstream string) {
	l.proxy.Lock()
	defer l.proxy.Unlock()
	return l.proxy.Enabled, l.proxy.Upstream
}

func (l *link) name() string { return LinkName(l.from, l.to) }

func (l *link) status() LinkStatus {
	enabled, _ := l.state()
	l.mu.Lock()
	defer l.mu.Unlock()
	return LinkStatus{
		Name: l.name(), From: l.from, To: l.to, Enabled: enabled,
		Accepted: l.accepted, Refused: l.refused, Unreachable: l.unreachable, Open: len(l.open),
		BytesUp: l.bytes[stream.Upstream].Load(), BytesDown: l.bytes[stream.Downstream].Load(),
	}
}

// disable and enable use toxiproxy's own states, so that its tools show them. A proxy releases its
// port when it is disabled. When it is enabled it gets another port, because the old one may be in
// use.
func (l *link) disable() error {
	l.proxy.Lock()
	disabled := &toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: l.proxy.Upstream}
	l.proxy.Unlock()
	return l.proxy.Update(disabled)
}

func (l *link) enable() error {
	enabled, upstream := l.state()
	if enabled {
		return errors.New("it is open: something else has enabled it, so the fault may have ended earlier than recorded")
	}
	return l.proxy.Update(&toxiproxy.Proxy{Listen: anyPort, Upstream: upstream, Enabled: true})
}

const anyPort = "127.0.0.1:0"

// close resets all connections and rejects new connections and new faults.
func (l *link) close(ctx context.Context) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.breakOpen(nil, nil)
	// Removing toxics releases their streams. The first call removes the toxics for which an
	// injection may wait, and the second the toxic that it added.
	l.clearToxics(ctx)
	l.configuring.Lock()
	defer l.configuring.Unlock()
	l.clearToxics(ctx)
}

func (l *link) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}
