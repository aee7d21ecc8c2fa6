package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
)

// An upgrade must have no body, because both the transport and the tunnel would read it. No
// transport sends a protocol that is no header value.
func TestUpgradesThatCannotBeSentAreRefused(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), neverAsked(t))
	for protocol, body := range map[string]string{"web\x01socket": "", "websocket": "a body"} {
		if got := s.ask("POST", gadgetsPath, body, "Connection", "Upgrade", "Upgrade", protocol); got.Code != http.StatusBadRequest {
			t.Errorf("an upgrade to %q: %d %s, want 400", protocol, got.Code, got.Body)
		}
	}
}

// A failed dial says nothing about earlier writes. Over HTTP/2, a transport dials a second time
// only for a request that the peer did not process.
func TestDialFailsAfterRequestWasWritten(t *testing.T) {
	for protocol, want := range map[string]string{"http/1.1": "a undecided", "h2": "a not-delivered, b undecided", "unknown": "a undecided"} {
		var connection httptrace.GotConnInfo
		if protocol != "unknown" {
			connection.Conn = securedConn{protocol: protocol}
		}
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn(r.URL.Host)
			trace.GotConn(connection)
			trace.WroteHeaders()
			if r.URL.Host == "b.test:6443" {
				return nil, io.ErrUnexpectedEOF
			}
			trace.GetConn(r.URL.Host)
			return nil, refusesConnection()
		}))
		got := s.ask("POST", gadgetsPath, "x")
		if outcomes := strings.Join(s.seen.outcomes(), ", "); outcomes != want || got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %d, Retry-After %q, after %s; want 503 that says nothing of repeating, after %s", protocol, got.Code, got.Header().Get("Retry-After"), outcomes, want)
		}
	}
}

type securedConn struct {
	net.Conn
	protocol string
}

func (c securedConn) ConnectionState() tls.ConnectionState {
	return tls.ConnectionState{NegotiatedProtocol: c.protocol}
}

// net/http repeats a request with an Idempotency-Key when a reused connection breaks.
func TestIdempotencyKeyIsNotRepeated(t *testing.T) {
	for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		onBoth(t, func(t *testing.T, http2 bool) {
			var created atomic.Int64
			far := peerServer(t, http2, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get(header) != "1" {
					t.Errorf("%s arrived as %q", header, r.Header[header])
				}
				if r.Method == http.MethodPost {
					created.Add(1)
					panic(http.ErrAbortHandler)
				}
			}))
			s := newShell(t, Reference(), capablePeers(map[ServerID]string{"a": address(far)}, "a"), transportTo(t, far, http2))
			if got := s.ask("GET", gadgetsPath, "", header, "1"); got.Code != http.StatusOK { // a reused connection
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			if got := s.ask("POST", gadgetsPath, "x", header, "1"); got.Code != http.StatusServiceUnavailable || created.Load() != 1 {
				t.Errorf("%d, and it was carried out %d times; want 503 and once", got.Code, created.Load())
			}
		})
	}
}
