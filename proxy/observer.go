package proxy

import "context"

// Observer gets reports of what a [Handler] does, with the context of the client's request.
// [Metrics] is an Observer. The goroutines that serve requests call the methods concurrently.
// Methods must not block.
type Observer interface {
	// Decided is called for every decision: the first one, and one after each failed attempt. tried
	// is the number of failed attempts. The handler carries out the last decision unless the client
	// closes its connection.
	Decided(ctx context.Context, r Request, d Decision, tried int)

	// Attempted is called when an attempt has ended: the headers have come, or will never come.
	Attempted(ctx context.Context, r Request, a AttemptResult)

	// Ejected is called when a failed attempt makes the server avoid a peer.
	Ejected(ctx context.Context, peer ServerID)

	// Discovered is called for each request for a discovery document. from is the source of the
	// answer.
	Discovered(ctx context.Context, from DiscoverySource)
}

// AttemptResult is how an attempt at a peer ended.
type AttemptResult struct {
	Peer     ServerID
	Answered bool // the peer has answered, with any status
	Code     int  // the HTTP status, if Answered

	Outcome Outcome // if not Answered
	Err     error   // if not Answered: the error of the transport, which may name addresses and is not for clients

	// Unauthorized: the peer did not accept this server's credentials.
	Unauthorized bool
}

// DiscoverySource is the source of a discovery document.
type DiscoverySource int

const (
	// DiscoveryCached is a merged document from the cache.
	DiscoveryCached DiscoverySource = iota
	// DiscoveryMerged is a document that was merged for this request.
	DiscoveryMerged
	// DiscoveryNoPeer is the local server's own document, for profile=nopeer.
	DiscoveryNoPeer
)

// Observers is an [Observer] that calls each of several.
type Observers []Observer

func (os Observers) Decided(ctx context.Context, r Request, d Decision, tried int) {
	for _, o := range os {
		o.Decided(ctx, r, d, tried)
	}
}

func (os Observers) Attempted(ctx context.Context, r Request, a AttemptResult) {
	for _, o := range os {
		o.Attempted(ctx, r, a)
	}
}

func (os Observers) Ejected(ctx context.Context, peer ServerID) {
	for _, o := range os {
		o.Ejected(ctx, peer)
	}
}

func (os Observers) Discovered(ctx context.Context, from DiscoverySource) {
	for _, o := range os {
		o.Discovered(ctx, from)
	}
}
