package sidecar

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"golang.org/x/net/http2"
)

// connections sends requests one after the other, and returns the number of connections that they
// used.
func (r *running) connections(c *http.Client, requests int) (n int) {
	for range requests {
		ctx := httptrace.WithClientTrace(r.t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				n++
			}
		}})
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.front+common, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		if got := do(r.t, c, request); got.code != http.StatusOK {
			r.t.Fatalf("%d %s", got.code, got.body)
		}
	}
	return n
}

// With --goaway-chance, HTTP/2 clients connect again at random times. Other clients and peers do
// not.
func TestGoawayChance(t *testing.T) {
	const requests = 1000
	_, never := one(t)
	if n := never.connections(never.user("alice"), requests/10); n != 1 {
		t.Errorf("without --goaway-chance: %d connections, want one", n)
	}
	_, r := one(t, func(_ *world, o *Options) { o.GoawayChance = maxGoawayChance })
	if n := r.connections(r.user("alice"), requests); n < 5 || n > 60 { // 21 on average
		t.Errorf("%d connections for %d requests, want one in 50", n, requests)
	}
	cert := r.ca.issue(subject{name: "alice"})
	if n := r.connections(r.client(&cert, false), requests/10); n != 1 {
		t.Errorf("by HTTP/1.1: %d connections, want one", n)
	}
}

func TestGoawayIsNotForPeers(t *testing.T) {
	h := withGoaway(1, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, c := range map[string]struct {
		major    int
		fromPeer bool
		want     string
	}{
		"a client by HTTP/2":   {2, false, "close"},
		"a client by HTTP/1.1": {1, false, ""},
		"a peer by HTTP/2":     {2, true, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, common, nil)
		r.ProtoMajor = c.major
		if c.fromPeer {
			r = r.WithContext(context.WithValue(r.Context(), fromPeerKey{}, true))
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Header().Get("Connection") != c.want {
			t.Errorf("%s: Connection is %q, want %q", name, w.Header().Get("Connection"), c.want)
		}
	}
}

// The server announces the number of streams, and the window of the connection grows with this
// number.
func TestStreamsOfAConnection(t *testing.T) {
	for flag, want := range map[int]uint32{0: 100, 1: 1, 7: 7, 1000: 1000} {
		_, r := one(t, func(_ *world, o *Options) { o.HTTP2MaxStreams = flag })
		announced, window := r.settings(r.front)
		if got := announced[http2.SettingMaxConcurrentStreams]; got != want || window != want*streamWindow {
			t.Errorf("--http2-max-streams-per-connection %d: %d streams and a window of %d, want %d and %d", flag, got, window, want, want*streamWindow)
		}
	}
}
