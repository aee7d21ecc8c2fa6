package traffic

import (
	"context"
	"fmt"
	"sync"
)

// maxConnecting is the maximum number of requests that may test at once whether a server answers.
const maxConnecting = 4

// gate limits the requests of a client to a server to which it has no working connection. When a
// server becomes ready, hundreds of requests may be due. Without the gate, each would dial for
// itself, because there is no HTTP/2 connection to share yet, and the handshakes would take CPU
// from the servers.
//
// The gate opens when a request is answered, and narrows when a request fails. It does not affect
// requests in progress. All methods are safe for concurrent use.
type gate struct {
	places chan struct{} // taken by requests that arrived while the gate was narrow

	mu     sync.Mutex
	isOpen bool
	open   chan struct{} // closed while the gate is open
}

func newGate() *gate {
	return &gate{places: make(chan struct{}, maxConnecting), open: make(chan struct{})}
}

// pass waits until the request may be sent. The caller must call done with its outcome.
func (g *gate) pass(ctx context.Context) (done func(error), err error) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open: // checked alone first: a select over both ready channels might take a place that is not needed
		return g.judge, nil
	default:
	}
	select {
	case <-open:
		return g.judge, nil
	case g.places <- struct{}{}:
		return func(err error) { <-g.places; g.judge(err) }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a connection that others try to make: %w", context.Cause(ctx))
	}
}

// judge opens the gate after an answer and narrows it after a failure.
func (g *gate) judge(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil && !g.isOpen:
		close(g.open)
	case err != nil && g.isOpen:
		g.open = make(chan struct{})
	}
	g.isOpen = err == nil
}
