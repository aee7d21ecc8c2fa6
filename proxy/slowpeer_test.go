package proxy

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Nothing but its own deadline ends a request: a list may take long, and a write waits for
// admission webhooks, each of which may take 30 s. No second peer is asked because the first is
// slow.
func TestSlowPeerIsWaitedFor(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
					asked++
					select {
					case <-time.After(40 * time.Second):
						return says(http.StatusOK, "slow"), nil
					case <-r.Context().Done():
						return nil, context.Cause(r.Context())
					}
				}))
				if got := s.ask(method, gadgetsPath, ""); got.Body.String() != "slow" || asked != 1 {
					t.Errorf("%d %s after %d attempts, want the answer of the first peer", got.Code, got.Body, asked)
				}
			})
		})
	}
}
