package proxy

import (
	"errors"
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

// If a connection was tried, the peer is to blame: the exception is for requests without a
// connection.
func TestConnectionThatFailsIsAFailureOfThePeer(t *testing.T) {
	for name, fail := range map[string]func(*http.Request) error{
		"none in time":  func(r *http.Request) error { traced(r.Context(), false); return errors.New("x") },
		"broke":         func(r *http.Request) error { traced(r.Context(), true); return errors.New("x") },
		"refused":       func(*http.Request) error { return refusesConnection() },
		"not delivered": func(*http.Request) error { return undelivered{errors.New("x")} },
	} {
		s := newShell(t, Reference(), capablePeers(nil, "a", "b"), transportFunc(func(r *http.Request) (*http.Response, error) { return nil, fail(r) }))
		s.ask("GET", gadgetsPath, "")
		if p, _ := s.store.Table().Peer("a"); !p.EjectedUntil.After(time.Now()) {
			t.Errorf("%s: the peer is not ejected", name)
		}
	}
}

func TestRequestThatCannotBeSentIs400(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) {
		t.Error("the peer was asked")
		return nil, errors.New("x")
	}))
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
