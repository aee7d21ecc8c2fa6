package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Over HTTP/1.1 a client may send more headers than HTTP/2 allows, because HTTP/2 counts 32 bytes
// more for each header. The peer is not to blame, and the shared connection to the peer must not
// break.
func TestTooLargeHeaders(t *testing.T) {
	for name, many := range map[string]func(*http.Request){
		"many short headers": func(r *http.Request) {
			for i := range 30000 {
				r.Header[fmt.Sprintf("A%d", i)] = []string{"x"}
			}
		},
		"one header many times":                   func(r *http.Request) { r.Header["A"] = strings.Split(strings.Repeat("x", 33000), "") },
		"cookies, each of which is a header then": func(r *http.Request) { r.Header["Cookie"] = []string{strings.Repeat(";", 60000)} },
		"a long query and header": func(r *http.Request) {
			r.URL.RawQuery = strings.Repeat("x", 1<<19)
			r.Header["A"] = []string{strings.Repeat("x", 1<<19)}
		},
	} {
		onBoth(t, func(t *testing.T, http2 bool) {
			far := peerServer(t, http2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error(name + ": sent to a peer") }))
			s := newShell(t, Reference(), capablePeers(map[ServerID]string{"a": address(far), "b": address(far)}, "a", "b"), transportTo(t, far, http2))
			r := httptest.NewRequest("GET", gadgetsPath, nil)
			many(r)
			if got := s.serve(r); got.Code != http.StatusRequestHeaderFieldsTooLarge || got.Header().Get("Retry-After") != "" || len(s.seen.ejected) != 0 {
				t.Errorf("%s: %d, Retry-After %q, avoided then: %v; want 431, and no peer to blame", name, got.Code, got.Header().Get("Retry-After"), s.seen.ejected)
			}
		})
	}
}

// Headers that a kube-apiserver accepts are forwarded.
func TestLargestHeaders(t *testing.T) {
	onBoth(t, func(t *testing.T, http2 bool) {
		far := peerServer(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, len(r.Header) >= 26000) }))
		s := newShell(t, Reference(), capablePeers(map[ServerID]string{"a": address(far)}, "a"), transportTo(t, far, http2))
		r := httptest.NewRequest("GET", gadgetsPath, nil)
		for i := range 26000 {
			r.Header[fmt.Sprintf("A%d", i)] = []string{"x"}
		}
		if got := s.serve(r); got.Code != http.StatusOK || got.Body.String() != "true" {
			t.Errorf("%d %.200s, want all 26000", got.Code, got.Body)
		}
	})
}

// A peer that is built with Go 1.27 or newer refuses many header values, before it knows the user.
// Only the server that forwards makes a header of each group, so the client is not to blame.
func TestAPeerThatRefusesManyHeaders(t *testing.T) {
	many := &user.DefaultInfo{Name: "alice"}
	for i := range 600 {
		many.Groups = append(many.Groups, fmt.Sprintf("group-%d", i))
	}
	for name, c := range map[string]struct {
		policy Policy
		peers  []ServerID
		audit  string // the Audit-ID of the 431
		want   int
		says   string
	}{
		"another peer accepts them": {Reference(), []ServerID{"a", "b"}, "", http.StatusOK, "600 groups"},
		"no peer does":              {Reference(), []ServerID{"a"}, "", http.StatusServiceUnavailable, "605 header values, of which 601 are the user's name, groups"},
		"the API answers 431":       {Reference(), []ServerID{"a"}, "1", http.StatusRequestHeaderFieldsTooLarge, "too large"},
		"as upstream":               {Upstream137(), []ServerID{"a"}, "", http.StatusRequestHeaderFieldsTooLarge, "too large"},
	} {
		onBoth(t, func(t *testing.T, http2 bool) {
			refusing := peerServer(t, http2, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.audit != "" {
					w.Header().Set("Audit-Id", c.audit)
				}
				http.Error(w, "too large", http.StatusRequestHeaderFieldsTooLarge)
			}))
			accepting := peerServer(t, http2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "%d groups", len(r.Header["X-Remote-Group"]))
			}))
			s := newShell(t, c.policy, capablePeers(map[ServerID]string{"a": address(refusing), "b": address(accepting)}, c.peers...),
				transportTo(t, refusing, http2)).by(many)
			got := s.ask("GET", gadgetsPath, "")
			if got.Code != c.want || !strings.Contains(got.Body.String(), c.says) || got.Header().Get("Retry-After") != "" || len(s.seen.ejected) > 0 {
				t.Errorf("%s: %d %s, Retry-After %q, avoided then: %v; want %d, %q, and no peer to blame",
					name, got.Code, got.Body, got.Header().Get("Retry-After"), s.seen.ejected, c.want, c.says)
			}
		})
	}
}
