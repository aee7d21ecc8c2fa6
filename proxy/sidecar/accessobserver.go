package sidecar

import (
	"context"
	"sync"

	"github.com/skewproof/skewproof/proxy"
)

// accessObserver is a [proxy.Observer] that records for the access log what was decided and tried, and counts the requests that are at a
// peer now, streams included.
type accessObserver struct {
	mu sync.Mutex
	at map[proxy.ServerID]int
}

var _ proxy.Observer = (*accessObserver)(nil)

func newAccessObserver() *accessObserver { return &accessObserver{at: map[proxy.ServerID]int{}} }

// Decided implements [proxy.Observer].
func (h *accessObserver) Decided(ctx context.Context, r proxy.Request, d proxy.Decision, _ int) {
	request := accessedFrom(ctx)
	request.Rerouted = r.Rerouted
	request.Decision, request.Reason = d.Action.String(), string(d.Reason)
	h.leave(request)
	if d.Action == proxy.Forward {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.at[d.Peer]++
		request.at = d.Peer
	}
}

// Attempted implements [proxy.Observer].
func (h *accessObserver) Attempted(ctx context.Context, _ proxy.Request, a proxy.AttemptResult) {
	request := accessedFrom(ctx)
	attempt := AccessAttempt{Peer: string(a.Peer.Identity()), Outcome: a.Outcome.String()}
	if a.Answered {
		attempt.Outcome = "answered"
		request.Peer = attempt.Peer
	}
	request.Attempts = append(request.Attempts, attempt)
}

// Ejected implements [proxy.Observer].
func (h *accessObserver) Ejected(context.Context, proxy.ServerID) {}

// Discovered implements [proxy.Observer].
func (h *accessObserver) Discovered(context.Context, proxy.DiscoverySource) {}

// leave ends the count of a request at a peer.
func (h *accessObserver) leave(request *accessed) {
	if request.at == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at[request.at]--; h.at[request.at] == 0 {
		delete(h.at, request.at)
	}
	request.at = ""
}

// inFlight is how many requests are at a peer now.
func (h *accessObserver) inFlight(peer proxy.ServerID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at[peer]
}
