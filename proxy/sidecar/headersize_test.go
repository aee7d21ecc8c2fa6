package sidecar

import (
	"fmt"
	"net/http"
	"testing"
)

// A client can send more headers over HTTP/1.1 than the shared HTTP/2 connection to the local
// server accepts. They must not break this connection.
func TestTooManyHeadersAreRefused(t *testing.T) {
	a, r := one(t)
	stranger := r.client(nil, false)
	for _, path := range []string{common, "/apis"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.front+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30000 {
			request.Header[fmt.Sprintf("A%d", i)] = []string{"x"}
		}
		if got := do(t, stranger, request); got.code != http.StatusRequestHeaderFieldsTooLarge || got.header.Get("Retry-After") != "" {
			t.Errorf("%s: %d %s, Retry-After %q, want 431", path, got.code, got.body, got.header.Get("Retry-After"))
		}
	}
	if s, ok := a.last(common); ok {
		t.Errorf("%s was sent to the local server as %s", s.path, s.user)
	}
}
