package sidecar

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/skewproof/skewproof/proxy"
)

// The authorizer must ask the local server whenever the handler would answer with a merged
// document. So both must read hop headers in the same way.
func TestAuthorizerAndHandlerAgreeOnHops(t *testing.T) {
	for value, merged := range map[string]bool{"": true, "false": true, "x": true, "true": false, " TRUE ": false} {
		for _, header := range []string{proxy.HopHeader, proxy.HopHeaderPublished} {
			r := httptest.NewRequest(http.MethodGet, "/apis", nil)
			r = r.WithContext(context.WithValue(r.Context(), fromPeerKey{}, true))
			r.Header.Set(header, value)
			if got := (&discoveryAuthorizer{}).mayBeMerged(r); got != merged {
				t.Errorf("%s: %q from a peer: merged %t, want %t", header, value, got, merged)
			}
			// Upstream's handler reads the hop header of resource requests only.
			if !(&discoveryAuthorizer{trustsAnyHop: true}).mayBeMerged(r) {
				t.Errorf("%s: %q from a peer, where any hop is trusted: merged false, want true", header, value)
			}
		}
	}
}
