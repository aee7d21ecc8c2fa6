package proxy

import (
	"net/http"
	"testing"
	"time"
)

// net/http refuses these requests before it looks for a connection, so no peer is to blame.
func TestRefusedByTheTransportIsNoFailureOfThePeer(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"method": func(r *http.Request) { r.Method = "(" },
		"header": func(r *http.Request) { r.Header["X-A"] = []string{"a\x00b"} },
		"URL":    func(r *http.Request) { r.URL.Scheme = "gopher" },
	} {
		real := &http.Transport{}
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) {
			spoiled := r.Clone(r.Context())
			spoil(spoiled)
			return real.RoundTrip(spoiled)
		}))
		if got := s.ask("GET", gadgetsPath, ""); got.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
		for _, p := range s.store.Table().Peers() {
			if p.EjectedUntil.After(time.Now()) {
				t.Errorf("%s: %s is ejected", name, p.ID)
			}
		}
	}
}

func TestRequestThatCannotBeSentIs400(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), neverAsked(t))
	for _, method := range []string{"(", "G T", "G\u00e9T"} {
		r, err := http.NewRequest("GET", gadgetsPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Method = method
		if got := s.serve(r); got.Code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", method, got.Code, got.Body)
		}
	}
}
