package sidecar

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// A request has a connection of its own, by HTTP/1.1, if its caller or its answer may end the
// connection, if it cannot be sent again, or if it may be upgraded. Only a body that cannot be sent
// again waits until the server asks for it, and not on the way to a pod, which may never ask.
func TestWhichRequestsShareConnections(t *testing.T) {
	const pod, plainText = "/api/v1/namespaces/n/pods/p/proxy/upload", "HTTP/1.1"
	alice := &user.DefaultInfo{Name: "alice"}
	nobody := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Proto, " ", r.Header.Get("Expect"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig
	transport := newTransport(0, 0, func() *tls.Config { return trust.Clone() })
	t.Cleanup(transport.close)
	for name, by := range map[string]struct {
		user   user.Info // asserted; nil: none
		caller *caller
		apart  bool
	}{
		"alice":                       {alice, nil, false},
		"nobody":                      {nobody, nil, true},
		"an accepted token":           {nil, &caller{trusted: true}, false},
		"another token":               {nil, &caller{}, true},
		"alice, asserted to a peer":   {alice, &caller{}, false}, // of a token
		"nobody, at a peer":           {nobody, &caller{trusted: true}, true},
		"a certificate":               {nil, &caller{asserted: alice}, false},
		"no certificate":              {nil, &caller{asserted: nobody}, true},
		"the sidecar itself":          {nil, nil, false},
		"alice, at an aggregated API": {nil, toAggregated(alice), false},
	} {
		for path, toPod := range map[string]bool{common: false, pod: true} {
			for _, body := range []string{"none", "no body", "again", "once"} {
				for _, upgrade := range []string{"", "websocket", "SPDY/3.1"} {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					switch body {
					case "no body":
						r.Body = http.NoBody
					case "again":
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
						r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }
					case "once":
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
					}
					if upgrade != "" {
						r.Header.Set("Upgrade", upgrade)
					}
					info, err := infos.NewRequestInfo(r)
					if err != nil {
						t.Fatal(err)
					}
					ctx := apirequest.WithRequestInfo(r.Context(), info)
					if by.user != nil {
						ctx = apirequest.WithUser(ctx, by.user)
					}
					if by.caller != nil {
						ctx = withCallerOf(ctx, by.caller)
					}
					r = r.WithContext(ctx)
					once := body == "once"
					want := "HTTP/2.0 "
					switch {
					case once && !toPod:
						want = plainText + " 100-continue"
					case once || by.apart || upgrade != "" || toPod || by.caller != nil && by.caller.aggregated.Load():
						want = plainText + " "
					}
					byOthers := toPod || by.caller != nil && by.caller.aggregated.Load()
					own, occupies := by.apart || once, by.apart || once || byOthers
					if needsOwnConnection(r) != own || occupiesConnection(r) != occupies {
						t.Errorf("%s, %s, body %s: own connection %t, occupies it %t; want %t, %t", name, path, body, needsOwnConnection(r), occupiesConnection(r), own, occupies)
					}
					answer, err := transport.RoundTrip(r)
					if err != nil {
						t.Fatalf("%s, %s, body %s, upgrade %q: %v", name, path, body, upgrade, err)
					}
					said, err := io.ReadAll(answer.Body)
					answer.Body.Close()
					if string(said) != want || err != nil {
						t.Errorf("%s, %s, body %s, upgrade %q: %q, error %v; want %q", name, path, body, upgrade, said, err, want)
					}
					if r.Header.Get("Expect") != "" {
						t.Error("the caller's own request was changed")
					}
				}
			}
		}
	}
}

// Upstream's times count if no time for dialling is given. A kube-apiserver closes idle connections
// after idleTimeout: a connection for requests that cannot be sent again is closed long before.
func TestTimesOfATransport(t *testing.T) {
	for _, c := range []struct{ dial, ping, handshake time.Duration }{
		{0, 0, 10 * time.Second}, {time.Second, silence, time.Second}, {time.Hour, 0, time.Hour},
	} {
		transport := newTransport(c.dial, c.ping, func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} })
		now := transport.current.Load()
		for _, each := range []*http.Transport{now.http2, now.http1} {
			if each.TLSHandshakeTimeout != c.handshake || each.HTTP2.SendPingTimeout != c.ping || !each.DisableCompression {
				t.Errorf("%+v: %s for the handshake, a ping after %s", c, each.TLSHandshakeTimeout, each.HTTP2.SendPingTimeout)
			}
		}
		if now.http2.IdleConnTimeout != idleTimeout || now.http1.IdleConnTimeout > idleTimeout/2 || now.http1.IdleConnTimeout <= 0 {
			t.Errorf("%+v: idle for %s and %s", c, now.http2.IdleConnTimeout, now.http1.IdleConnTimeout)
		}
		if now.http2.ExpectContinueTimeout != 0 || now.http1.ExpectContinueTimeout != expectTimeout {
			t.Errorf("%+v: bodies wait %s and %s", c, now.http2.ExpectContinueTimeout, now.http1.ExpectContinueTimeout)
		}
		transport.close()
	}
}

// A connection that is not admitted is closed, and carries no request. The error is the one that
// the client is told.
func TestOnlyAdmittedConnectionsAreUsed(t *testing.T) {
	served := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	t.Cleanup(server.Close)
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig
	first, second := &identityNames{user: []string{"A"}}, &identityNames{user: []string{"B"}}
	transport := newTransport(0, 0, func() *tls.Config { return trust.Clone() })
	t.Cleanup(transport.close)
	var admits error
	var of []*identityNames
	transport.admit = func(_ context.Context, names *identityNames) error { of = append(of, names); return admits }
	for i, stage := range []struct {
		use    *identityNames // nil: no change
		by     *identityNames // with which the request's headers were cleaned
		admits error
		want   error
		served int
		dials  int
	}{
		{nil, first, nil, errNamesChanged, 0, 0},
		{first, first, errNamesChanged, errNamesChanged, 0, 1},
		{nil, first, nil, nil, 1, 2},
		{nil, first, errNamesChanged, nil, 2, 2}, // the connection has been admitted
		{second, first, nil, errNamesChanged, 2, 2},
		{nil, second, nil, nil, 3, 3},
		{nil, nil, nil, errNamesChanged, 3, 3},
	} {
		if stage.use != nil {
			transport.use(stage.use)
		}
		admits = stage.admits
		c := &caller{asserted: &user.DefaultInfo{Name: "alice"}}
		c.cleaned.Store(stage.by)
		body := &closing{Reader: strings.NewReader("x")}
		r, err := http.NewRequestWithContext(withCallerOf(t.Context(), c), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }
		answer, err := transport.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		if err != stage.want || served != stage.served || len(of) != stage.dials || !body.closed {
			t.Errorf("stage %d: %v, %d served, %d dialled, the body closed %t; want %v, %d, %d", i+1, err, served, len(of), body.closed, stage.want, stage.served, stage.dials)
		}
		if n := len(of); n > 0 && of[n-1] != transport.names.Load() && stage.use == nil {
			t.Errorf("stage %d: the connection was admitted for other names", i+1)
		}
	}
	// A request that began before the names changed is admitted for the names of its own headers.
	of = nil
	before := transport.current.Load()
	transport.use(first)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := before.http1.RoundTrip(r); err == nil {
		answer.Body.Close()
	}
	if len(of) != 1 || of[0] != second {
		t.Errorf("a connection for a request that began before was admitted for %v, want %v", of, second)
	}
	before.closeIdle()
}
