package proxy

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// A 503 that the handler itself makes names resources and peers only to callers that may do what
// the request asks for.
func TestUnavailableIsAuthorizedFirst(t *testing.T) {
	forbidden := &metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: "alice cannot"}
	refuses := func(*http.Request) (*metav1.Status, error) { return forbidden, nil }
	dunno := func(*http.Request) (*metav1.Status, error) { return nil, errors.New("no answer from 192.0.2.1") }
	unreachable := transportFunc(func(*http.Request) (*http.Response, error) { return nil, refusesConnection() })
	known, unsynced := slices.Clip(capablePeers(nil, "a")), []Event{PeerAppeared{ID: "a", Incarnation: "1"}}
	for name, c := range map[string]struct {
		authorize func(*http.Request) (*metav1.Status, error)
		policy    func() Policy
		events    []Event
		peer      bool
		method    string
		code      int
		has       string
		lacks     []string
		retry     string
	}{
		"allowed":                            {authorize: Authorized, events: known, code: 503, has: "a: it could not be reached"},
		"refused":                            {authorize: refuses, events: known, code: 403, has: "alice cannot", lacks: []string{"gadgets", "a:"}},
		"unknown":                            {authorize: dunno, events: known, code: 503, has: "this cannot be served", lacks: []string{"gadgets", "a:", "192.0.2.1", "peer"}},
		"nobody to ask":                      {events: known, code: 503, has: "this cannot be served", lacks: []string{"gadgets", "a:", "peer"}},
		"the existing resources are unknown": {authorize: refuses, events: unsynced, code: 403, lacks: []string{"gadgets", "a:"}},
		"the same, unknown":                  {authorize: dunno, events: unsynced, code: 503, lacks: []string{"gadgets", "a:", "serve it"}, retry: "1"},
		"a write that was not sent":          {authorize: dunno, events: known, method: "POST", code: 503, lacks: []string{"gadgets"}},
		"like upstream, refused":             {authorize: refuses, policy: Upstream137, events: known, code: 403, lacks: []string{"dial", "test:6443"}},
		"like upstream, unknown":             {authorize: dunno, policy: Upstream137, events: known, code: 503, lacks: []string{"dial", "test:6443"}},
		"a peer asks for its client":         {authorize: refuses, events: known, peer: true, code: 503, has: "another server sent the request here"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := Reference
			if c.policy != nil {
				policy = c.policy
			}
			s := newShell(t, policy(), c.events, unreachable, func(config *Config) {
				config.FromPeer = func(*http.Request) bool { return c.peer }
				if config.Authorize = c.authorize; c.authorize == nil {
					return
				}
				config.Authorize = func(r *http.Request) (*metav1.Status, error) {
					if info, ok := apirequest.RequestInfoFrom(r.Context()); !ok || info.Resource != "gadgets" {
						t.Errorf("the request to be authorized has the RequestInfo %+v", info)
					}
					return c.authorize(r)
				}
			})
			method := c.method
			if method == "" {
				method = "GET"
			}
			got := s.ask(method, gadgetsPath+"/x", "", HopHeader, map[bool]string{true: "true"}[c.peer])
			body := got.Body.String()
			if got.Code != c.code || !strings.Contains(body, c.has) || got.Header().Get("Retry-After") != c.retry && c.has != "another server sent the request here" {
				t.Errorf("%d %s, Retry-After %q; want %d with %q, %q", got.Code, body, got.Header().Get("Retry-After"), c.code, c.has, c.retry)
			}
			for _, secret := range c.lacks {
				if strings.Contains(body, secret) {
					t.Errorf("%q is in %s", secret, body)
				}
			}
			if (got.Header().Get(RefusedHeader) != "") != c.peer {
				t.Errorf("%s is %q", RefusedHeader, got.Header().Get(RefusedHeader))
			}
		})
	}
}

// The handler refuses some requests only when it sends them to a peer. Callers that may not use the
// resource must not learn that a peer serves it.
func TestRefusalsOnTheWayToAPeerAreAuthorized(t *testing.T) {
	for name, c := range map[string]struct {
		refusal *metav1.Status
		err     error
		code    int
	}{
		"allowed": {code: 400},
		"refused": {refusal: &metav1.Status{Status: metav1.StatusFailure, Code: 403}, code: 403},
		"unknown": {err: errors.New("no answer"), code: 400},
	} {
		s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) { return says(200, "peer"), nil }),
			func(config *Config) {
				config.Authorize = func(*http.Request) (*metav1.Status, error) { return c.refusal, c.err }
			})
		for protocol, body := range map[string]string{"web\x01socket": "", "websocket": "a body"} {
			if got := s.ask("POST", gadgetsPath, body, "Connection", "Upgrade", "Upgrade", protocol); got.Code != c.code {
				t.Errorf("%s, an upgrade to %q: %d %s; want %d", name, protocol, got.Code, got.Body, c.code)
			}
		}
	}
}

// The handler does not authorize a request that it does not answer itself. The server that serves
// the request authorizes it.
func TestOnlyUnavailableIsAuthorized(t *testing.T) {
	s := newShell(t, Reference(), capablePeers(nil, "a"), transportFunc(func(*http.Request) (*http.Response, error) { return says(200, "peer"), nil }),
		func(c *Config) {
			c.Authorize = func(r *http.Request) (*metav1.Status, error) {
				t.Errorf("asked about %s", r.URL)
				return nil, nil
			}
		})
	for _, path := range []string{gadgetsPath, "/api/v1/pods", "/apis/none.example/v1/x", "/version", "/apis"} {
		s.ask("GET", path, "")
	}
}
