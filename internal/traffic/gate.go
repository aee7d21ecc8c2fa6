package traffic

import (
	"context"
	"fmt"
	"sync"
)

// maxConnecting bounds the requests that may try at once whether a server answers.
const maxConnecting = 4

// gate keeps a client from storming a server to which it has no working connection. Without it,
// each of hundreds of requests that are due when a server comes up dials for itself, as there is no
// HTTP/2 connection to share yet, and the handshakes take CPU from the servers.
//
// It opens when a request is answered, and narrows when one fails. Requests under way are not
// affected. All methods may be called concurrently.
type gate struct {
	places chan struct{} // taken by requests that came while the gate was narrow

	mu     sync.Mutex
	isOpen bool
	open   chan struct{} // closed while the gate is open
}

func newGate() *gate {
	return &gate{places: make(chan struct{}, maxConnecting), open: make(chan struct{})}
}

// pass waits until the request may be sent. done is to be called with its outcome.
func (g *gate) pass(ctx context.Context) (done func(error), err error) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open: // first, for a select among ready channels would also take places that are not needed
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
