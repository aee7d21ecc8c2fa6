package proxy

import (
	"net/http"
	"net/http/httptrace"
	"testing"
)

// An upgrade with a body would be read by two at once: by the transport, and by the tunnel.
func TestUpgradeWithABodyIsRefused(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) {
		t.Error("sent to the peer")
		return says(200, ""), nil
	}))
	if got := s.ask("POST", gadgetsPath, "body", "Connection", "Upgrade", "Upgrade", "websocket"); got.Code != http.StatusBadRequest {
		t.Errorf("%d %s, want 400", got.Code, got.Body)
	}
}

// A transport that sent a request, lost the connection and found no other one has not left it undelivered.
func TestWrittenIsNotUndelivered(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn("a")
		trace.GotConn(httptrace.GotConnInfo{})
		trace.WroteHeaders()
		trace.GetConn("a") // again, because of the client's Idempotency-Key
		return nil, errRefused
	}))
	got := s.ask("POST", gadgetsPath, "x", "Idempotency-Key", "1")
	if got.Code != http.StatusServiceUnavailable || len(s.seen.outcomes()) != 1 || s.seen.outcomes()[0] != "a undecided" {
		t.Errorf("%d after %v, want 503 after one undecided attempt", got.Code, s.seen.outcomes())
	}
}
