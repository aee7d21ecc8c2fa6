package traffic

import (
	"context"
	"fmt"
	"sync"
)

// maxConnecting bounds the requests that may try at once whether a server answers.
const maxConnecting = 4

// gate keeps a client from storming a server it has no working connection to. Without it, each of the hundreds of
// requests that are due when a server comes (back) up dials a connection of its own, as no HTTP/2 connection is there to
// share yet, and the handshakes take the processor time that the servers under test need.
//
// It stands open once a request has been answered, and narrows when one fails. Requests that are already under way are
// not affected. All methods may be called concurrently.
type gate struct {
	places chan struct{} // taken by requests that came while the gate was narrow

	mu   sync.Mutex
	open chan struct{} // closed while the gate stands open
}

func newGate() *gate {
	return &gate{places: make(chan struct{}, maxConnecting), open: make(chan struct{})}
}

// pass waits until the request may be sent, and returns what to call when it has been answered or has failed.
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
	isOpen := false
	select {
	case <-g.open:
		isOpen = true
	default:
	}
	switch {
	case err == nil && !isOpen:
		close(g.open)
	case err != nil && isOpen:
		g.open = make(chan struct{})
	}
}
