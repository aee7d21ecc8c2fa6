package proxy

import (
	"context"
	"time"
)

// Observer is told what a [Handler] does. The context is that of the client's request, so that what belongs together can be
// put together. Methods are called concurrently, on the goroutine that serves the request, and must not wait.
type Observer interface {
	// Decided is told of every decision, the first for a request and those after failed attempts; tried is how many those were. The
	// last one for a request is what becomes of it, unless the client goes away.
	Decided(ctx context.Context, r Request, d Decision, tried int)

	// Attempted is told how a try at a peer ended: when the headers of its answer are there, or it is clear that they never will be.
	Attempted(ctx context.Context, r Request, a AttemptResult)

	// Ejected is told that a peer is avoided from now on, because of an attempt that failed.
	Ejected(ctx context.Context, peer ServerID)

	// Discovered is told where the answer to a request for a discovery document comes from.
	Discovered(ctx context.Context, from DiscoverySource)
}

// AttemptResult is how a try at a peer ended.
type AttemptResult struct {
	Peer ServerID

	// Answered is true if the peer has answered, whatever it said; Code is its HTTP status.
	Answered bool
	Code     int

	// Outcome is how it ended otherwise, and Err why: the transport's own words, which may name addresses and are not for clients.
	Outcome Outcome
	Err     error

	// Busy is true if the request was never handed to the transport, because too many to this peer are in flight.
	Busy bool

	// Duration is how long it took, by the handler's clock.
	Duration time.Duration
}

// DiscoverySource is where a discovery document comes from.
type DiscoverySource int

const (
	// DiscoveryCached is a merged document that was there already.
	DiscoveryCached DiscoverySource = iota
	// DiscoveryMerged is one that was made for this request.
	DiscoveryMerged
	// DiscoveryNoPeer is the local server's own, because the client asked for it (profile=nopeer).
	DiscoveryNoPeer
)

// Observers tells each of several.
type Observers []Observer

// Decided tells each of a decision.
func (os Observers) Decided(ctx context.Context, r Request, d Decision, tried int) {
	for _, o := range os {
		o.Decided(ctx, r, d, tried)
	}
}

// Attempted tells each how a try ended.
func (os Observers) Attempted(ctx context.Context, r Request, a AttemptResult) {
	for _, o := range os {
		o.Attempted(ctx, r, a)
	}
}

// Ejected tells each that a peer is avoided.
func (os Observers) Ejected(ctx context.Context, peer ServerID) {
	for _, o := range os {
		o.Ejected(ctx, peer)
	}
}

// Discovered tells each where a discovery document comes from.
func (os Observers) Discovered(ctx context.Context, from DiscoverySource) {
	for _, o := range os {
		o.Discovered(ctx, from)
	}
}
