package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func only(paths ...string) (conditions []apiserverapi.AnonymousAuthCondition) {
	for _, path := range paths {
		conditions = append(conditions, apiserverapi.AnonymousAuthCondition{Path: path})
	}
	return conditions
}

// says reports whether the sidecar says that a flag of its server differs, or that it does not
// differ: in the metric and in /debug/peers.
func (r *running) says(flag string, differs bool) bool {
	value := map[bool]string{false: "0", true: "1"}[differs]
	return strings.Contains(r.onAdmin("/metrics").body, fmt.Sprintf("\nskewproof_proxy_local_flag_mismatch{flag=%q} %s\n", flag, value)) &&
		strings.Contains(strings.Join(r.report(r.t).Mismatches, "\n"), flag) == differs
}

// asserted returns how many requests for a path the server got in which the sidecar asserted
// system:anonymous.
func (a *apiserver) asserted(path string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seen {
		if s.path == path && s.header.Get("X-Remote-User") == "system:anonymous" {
			n++
		}
	}
	return n
}

// If the local server would have answered 401, the sidecar must not assert that a caller is
// system:anonymous.
func TestAnonymousCallersAreRefusedWhereTheLocalServerRefusesThem(t *testing.T) {
	t.Parallel()
	const elsewhere = common + "/x"
	for name, c := range map[string]struct {
		server  []apiserverapi.AnonymousAuthCondition // none: everywhere
		nowhere bool
		off     bool     // --anonymous-auth=false
		paths   []string // --anonymous-auth-paths
		want    [2]int   // at common, and elsewhere
		differs bool
	}{
		"both everywhere":                  {want: [2]int{200, 200}},
		"both nowhere":                     {nowhere: true, off: true, want: [2]int{401, 401}},
		"both at the same path":            {server: only(common), paths: []string{common}, want: [2]int{200, 401}},
		"the server nowhere":               {nowhere: true, want: [2]int{401, 401}, differs: true},
		"the server at one path":           {server: only(common), want: [2]int{401, 401}, differs: true},
		"the server at fewer paths":        {server: only(common), paths: []string{common, elsewhere}, want: [2]int{401, 401}, differs: true},
		"the server nowhere, one path":     {nowhere: true, paths: []string{common}, want: [2]int{401, 401}, differs: true},
		"the server everywhere, one path":  {paths: []string{common}, want: [2]int{200, 401}, differs: true},
		"the server everywhere, not here":  {off: true, want: [2]int{401, 401}, differs: true},
		"the server at one path, not here": {server: only(common), off: true, want: [2]int{401, 401}}, // the sidecar does not notice this, and it is harmless
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere)
			a.admits, a.noAnonymous = c.server, c.nowhere
			o := w.options("a", a)
			o.Peers = []string{"apiserver-nobody=127.0.0.1:1"}
			o.AnonymousAuth, o.AnonymousAuthPaths = !c.off, c.paths
			r := w.run(o)
			r.awaitReady() // the sidecar becomes ready even if the flag differs
			nobody, alice := r.client(nil, true), r.user("alice")
			for i, path := range []string{common, elsewhere} {
				if got := r.get(nobody, path); got.code != c.want[i] {
					t.Errorf("%s: %d %s, want %d", path, got.code, got.body, c.want[i])
				}
				if n := a.asserted(path); n != 0 && c.want[i] != http.StatusOK {
					t.Errorf("%s: the local server was asked %d times as system:anonymous", path, n)
				}
				if got := r.get(alice, path); got.code != http.StatusOK {
					t.Errorf("%s as alice: %d %s", path, got.code, got.body)
				}
			}
			await(t, fmt.Sprintf("a mismatch is named: %t", c.differs), func() bool { return r.says(flagAnonymous, c.differs) })
		})
	}
}

// A restart of the local server may change its flags in both directions.
func TestFlagsAreLookedAtAfterARestart(t *testing.T) {
	t.Parallel()
	a, r := one(t)
	nobody := r.client(nil, true)
	refuses := func(on bool) {
		t.Helper()
		a.set(func() {
			a.noAnonymous = on
			a.hooks = nil
			if on {
				a.hooks = []string{"poststarthook/mixed-version-proxy-handler"}
			}
		})
		a.restart()
		await(t, fmt.Sprintf("both mismatches are named: %t", on), func() bool {
			return r.says(flagAnonymous, on) && r.says(flagBuiltIn, on) && r.onAdmin("/readyz").code == http.StatusOK
		})
	}
	want := func(code int) {
		t.Helper()
		if got := r.get(nobody, common); got.code != code {
			t.Errorf("%d %s, want %d", got.code, got.body, code)
		}
	}
	want(http.StatusOK)
	refuses(true)
	want(http.StatusUnauthorized)
	refuses(false)
	want(http.StatusOK)
}

// Only the hook of the server's own proxy counts, whether the hook has ended or not.
func TestBuiltInProxyIsNoticed(t *testing.T) {
	for line, want := range map[string]bool{
		"[+]poststarthook/mixed-version-proxy-handler ok":                                        true,
		"[-]poststarthook/mixed-version-proxy-handler failed: reason withheld":                   true,
		"[+]poststarthook/mixed-version-proxy-handler excluded: ok":                              true,
		"[+]poststarthook/unknown-version-proxy-filter ok":                                       true,
		"[+]poststarthook/peer-endpoint-reconciler-controller ok":                                false, // the feature gate alone
		"[+]poststarthook/mixed-version-proxy-handlers ok":                                       false,
		"[+]mixed-version-proxy-handler ok":                                                      false,
		"[+]poststarthook/x failed: no poststarthook/mixed-version-proxy-handler":                false,
		"warn: poststarthook/mixed-version-proxy-handler":                                        false,
		strings.Repeat("[+]ping ok\n", 1000) + "[+]poststarthook/mixed-version-proxy-handler ok": true,
	} {
		for _, code := range []int{http.StatusOK, http.StatusInternalServerError} {
			f := flagsOf(NewOptions(), nil, func(*http.Request) (*http.Response, error) {
				return answers(code, "[+]ping ok\n"+line+"\nlivez check passed"), nil
			})
			if got, err := f.hasBuiltInProxy(t.Context()); got != want || err != nil {
				t.Errorf("%d %.80s: %t, error %v; want %t", code, line, got, err, want)
			}
		}
	}
	for _, code := range []int{401, 403, 404, 429, 503} {
		f := flagsOf(NewOptions(), nil, func(*http.Request) (*http.Response, error) { return answers(code, ""), nil })
		if _, err := f.hasBuiltInProxy(t.Context()); err == nil {
			t.Errorf("%d says whether the proxy is on", code)
		}
	}
}

func answers(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func flagsOf(o *Options, anonymous, asSelf fakeTransport) *localFlags {
	return newLocalFlags(o, &url.URL{Scheme: "https", Host: "127.0.0.1:1"}, anonymous, asSelf, slog.New(slog.DiscardHandler))
}

// Each case is the server's answer to an anonymous request, and the acceptance that follows from
// it.
func TestWhatProvesThatAnonymousRequestsAreAccepted(t *testing.T) {
	for code, want := range map[int]acceptance{
		200: accepted, 403: accepted, 404: accepted, 406: accepted, 401: refused,
		429: acceptanceUnknown, 500: acceptanceUnknown, 502: acceptanceUnknown, 503: acceptanceUnknown, 504: acceptanceUnknown, 0: acceptanceUnknown,
	} {
		f := flagsOf(NewOptions(), func(*http.Request) (*http.Response, error) {
			if code == 0 {
				return nil, errors.New("connection refused")
			}
			return answers(code, ""), nil
		}, nil)
		if learnt := f.lookAnonymous(t.Context()); acceptance(f.state.Load()) != want || learnt != (want != acceptanceUnknown) || f.known() != learnt {
			t.Errorf("%d: %v, learnt %t, known %t; want %v", code, f.state.Load(), learnt, f.known(), want)
		}
		f.suspect()
		if f.known() {
			t.Errorf("%d: still known of another process", code)
		}
	}
	o := NewOptions()
	o.AnonymousAuthPaths = []string{"/readyz"}
	f := flagsOf(o, func(r *http.Request) (*http.Response, error) {
		if len(r.Header) != 1 || r.Header.Get("User-Agent") != userAgent {
			t.Errorf("it is asked with %v, want no credentials", r.Header)
		}
		if r.URL.Path == "/readyz" {
			return answers(http.StatusInternalServerError, "[-]etcd failed"), nil
		}
		return answers(http.StatusUnauthorized, ""), nil
	}, nil)
	if !f.lookAnonymous(t.Context()) || len(f.trouble()) != 0 {
		t.Errorf("a server that is not ready: trouble %q", f.trouble())
	}
}

// While the flag is unknown, no caller is anonymous. This does not apply to callers of a peer.
func TestWhoIsHeldToTheLocalServersAnonymousAuth(t *testing.T) {
	nobody := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	alice := &user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}
	for name, c := range map[string]struct {
		by       user.Info
		fromPeer bool
		want     map[acceptance]int
	}{
		"anonymous":           {nobody, false, map[acceptance]int{accepted: 200, refused: 401, acceptanceUnknown: 503}},
		"anonymous at a peer": {nobody, true, map[acceptance]int{accepted: 200, refused: 200, acceptanceUnknown: 200}},
		"a user":              {alice, false, map[acceptance]int{accepted: 200, refused: 200, acceptanceUnknown: 200}},
	} {
		for state, want := range c.want {
			f := flagsOf(NewOptions(), nil, nil)
			f.state.Store(int32(state))
			ctx := apirequest.WithUser(t.Context(), c.by)
			if c.fromPeer {
				ctx = context.WithValue(ctx, fromPeerKey{}, true)
			}
			w := httptest.NewRecorder()
			anonymousAsLocal(f, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, common, nil))
			if again := w.Header().Get("Retry-After"); w.Code != want || (again != "") != (want == 503) {
				t.Errorf("%s, %v: %d, Retry-After %q; want %d", name, state, w.Code, again, want)
			}
		}
	}
}
