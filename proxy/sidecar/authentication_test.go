package sidecar

import (
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

const common = "/apis/both.example/v1/commons"

// one starts one server with a sidecar and no peers.
func one(t *testing.T, adjust ...func(*world, *Options)) (*apiserver, *running) {
	w := newWorld(t)
	a := newAPIServer(t, "a", w.serving, w.frontCA, everywhere)
	o := w.options("a", a)
	o.Peers = []string{"apiserver-nobody=127.0.0.1:1"} // the address refuses connections; it is not used
	for _, f := range adjust {
		f(w, o)
	}
	r := w.run(o)
	r.awaitReady()
	return a, r
}

// Behind the sidecar, the local server cannot limit anonymous callers to some paths, so the sidecar
// must do it.
func TestAnonymousAtSomePathsOnly(t *testing.T) {
	a, r := one(t, func(_ *world, o *Options) { o.AnonymousAuthPaths = []string{common} })
	nobody := r.client(nil, true)
	got := r.get(nobody, common)
	if s, _ := a.last(common); got.code != http.StatusOK || s.user != "system:anonymous" {
		t.Errorf("%d, as %q; want 200 as system:anonymous", got.code, s.user)
	}
	got = r.get(nobody, common+"/x")
	if _, arrived := a.last(common + "/x"); got.code != http.StatusUnauthorized || arrived {
		t.Errorf("elsewhere: %d, arrived %t; want 401, and the local server not asked", got.code, arrived)
	}
	if got := r.get(r.user("alice"), common+"/x"); got.code != http.StatusOK {
		t.Errorf("alice: %d", got.code)
	}
}

// The local server must see the authenticated user, for all other contents of the request.
func TestLocalServerSeesTheCaller(t *testing.T) {
	a, r := one(t)
	stranger := newAuthority(t, "strangers")
	a.set(func() {
		a.tokens["good"] = authenticationv1.UserInfo{
			Username: "system:serviceaccount:default:bot", UID: "bot-uid", Groups: []string{"system:serviceaccounts"},
			Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=1"}, "Odd key": {"x", ""}},
		}
		a.tokens["sly"] = authenticationv1.UserInfo{Username: "sly", Groups: []string{" system:masters"}}
		a.tokens["twice"] = authenticationv1.UserInfo{Username: "sly", Extra: map[string]authenticationv1.ExtraValue{"scopes": {"read"}, "Scopes": {"all"}}}
		a.tokens["split"] = authenticationv1.UserInfo{Username: "sly\r\nX-Remote-Group: system:masters"}
	})
	certificate := func(by *authority, name string, groups ...string) *issued {
		i := by.issue(subject{name: name, groups: groups})
		return &i
	}
	expired := r.ca.issue(subject{name: "late", notAfter: time.Now().Add(-time.Minute)})
	spoofed := []string{
		"X-Remote-User", "root", "X-Remote-Group", "system:masters", "X-Remote-Uid", "0", "X-Remote-Extra-Scopes", "all",
		"x-remote-user", "root", "X-REMOTE-GROUP", "system:masters", "X_Remote_User", "root",
	}
	for _, test := range []struct {
		name    string
		cert    *issued
		headers []string
		code    int // 200 if zero
		user    string
		uid     string
		groups  []string
		extra   map[string][]string // headers, or extra attributes if own is true
		own     bool                // the local server gets the request's own credentials
	}{
		{name: "client certificate", cert: certificate(r.ca, "alice", "staff"), user: "alice", groups: []string{"staff", "system:authenticated"}},
		{name: "administrator", cert: certificate(r.ca, "admin", "system:masters"), user: "admin", groups: []string{"system:masters", "system:authenticated"}},
		{name: "client certificate and spoofed headers", cert: certificate(r.ca, "mallory"), headers: spoofed, user: "mallory", groups: []string{"system:authenticated"}},
		{name: "nothing", user: "system:anonymous", groups: []string{"system:unauthenticated"}},
		{name: "nothing but spoofed headers", headers: spoofed, user: "system:anonymous", groups: []string{"system:unauthenticated"}},
		{
			name: "token", headers: []string{"Authorization", "Bearer good"}, user: "system:serviceaccount:default:bot", uid: "bot-uid",
			groups: []string{"system:serviceaccounts", "system:authenticated"},
			extra:  map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=1"}, "Odd key": {"x", ""}}, own: true,
		},
		{name: "token and spoofed headers", headers: append([]string{"Authorization", "Bearer good"}, spoofed...), user: "system:serviceaccount:default:bot", uid: "bot-uid",
			groups: []string{"system:serviceaccounts", "system:authenticated"}, own: true},
		{name: "certificate and token", cert: certificate(r.ca, "alice"), headers: []string{"Authorization", "Bearer good"}, user: "alice", groups: []string{"system:authenticated"}},
		{name: "certificate of a stranger and a token", cert: certificate(stranger, "root", "system:masters"), headers: []string{"Authorization", "Bearer good"},
			user: "system:serviceaccount:default:bot", uid: "bot-uid", groups: []string{"system:serviceaccounts", "system:authenticated"}, own: true},
		{name: "unknown token", headers: []string{"Authorization", "Bearer bad"}, code: http.StatusUnauthorized, own: true},
		{name: "unknown token and spoofed headers", headers: append([]string{"Authorization", "Bearer bad"}, spoofed...), code: http.StatusUnauthorized, own: true},
		{name: "certificate of a stranger and basic authentication", cert: certificate(stranger, "root"), headers: []string{"Authorization", "Basic cm9vdDpyb290"}, code: http.StatusUnauthorized},
		{name: "front proxy that says nothing, with a token", cert: &r.proxies, headers: []string{"Authorization", "Bearer good"},
			user: "system:serviceaccount:default:bot", uid: "bot-uid", groups: []string{"system:serviceaccounts", "system:authenticated"}, own: true},
		{name: "certificate of a stranger", cert: certificate(stranger, "root", "system:masters"), code: http.StatusUnauthorized},
		{name: "certificate of a stranger and spoofed headers", cert: certificate(stranger, "front-proxy-client"), headers: spoofed, code: http.StatusUnauthorized},
		{name: "expired certificate", cert: &expired, code: http.StatusUnauthorized},
		{name: "the front proxy's name from the authority of clients", cert: certificate(r.ca, "front-proxy-client"), headers: spoofed, user: "front-proxy-client", groups: []string{"system:authenticated"}},
		{name: "front proxy", cert: &r.proxies, headers: []string{"X-Remote-User", "bob", "X-Remote-Group", "ops", "X-Remote-Group", "dev", "X-Remote-Uid", "7", "X-Remote-Extra-Scopes", "some"},
			user: "bob", uid: "7", groups: []string{"ops", "dev", "system:authenticated"}, extra: map[string][]string{"X-Remote-Extra-Scopes": {"some"}}},
		{name: "front proxy that says nothing", cert: &r.proxies, code: http.StatusUnauthorized},
		{name: "front proxy of a name that is not allowed", cert: certificate(r.frontCA, "other-proxy"), headers: spoofed, code: http.StatusUnauthorized},
		{name: "group that headers would change", headers: []string{"Authorization", "Bearer sly"}, user: "sly", groups: []string{" system:masters", "system:authenticated"}, own: true},
		{name: "basic authentication", headers: []string{"Authorization", "Basic cm9vdDpyb290"}, user: "system:anonymous", groups: []string{"system:unauthenticated"}, own: true},
		{name: "bearer without a token", headers: []string{"Authorization", "Bearer  good"}, user: "system:anonymous", groups: []string{"system:unauthenticated"}, own: true},
		{name: "nothing in the header", headers: []string{"Authorization", " "}, user: "system:anonymous", groups: []string{"system:unauthenticated"}},
	} {
		for _, http2 := range []bool{false, true} {
			path := common + "/" + strings.ReplaceAll(test.name, " ", "-")
			if http2 {
				path += "-2"
			}
			headers := append([]string{"Impersonate-User", "someone", "X-Forwarded-For", "192.0.2.1"}, test.headers...)
			if test.code != 0 && test.own { // the local server itself answers with this code
				if got := r.get(r.client(test.cert, http2), path, headers...); got.code != test.code || got.status(t).Status != metav1.StatusFailure {
					t.Errorf("%s: %d %s; want %d with a Status", test.name, got.code, got.body, test.code)
				}
				continue
			}
			got := r.get(r.client(test.cert, http2), path, headers...)
			s, arrived := a.last(path)
			if test.code != 0 {
				if got.code != test.code || arrived || got.status(t).Status != metav1.StatusFailure || got.header.Get("Audit-Id") == "" {
					t.Errorf("%s: %d %s, arrived %t; want %d with a Status and an audit ID, and the local server not asked", test.name, got.code, got.body, arrived, test.code)
				}
				continue
			}
			if got.code != http.StatusOK || s.user != test.user || s.uid != test.uid || !slices.Equal(s.groups, test.groups) {
				t.Errorf("%s: %d %s; the local server saw user %q, UID %q, groups %q; want %q, %q, %q", test.name, got.code, got.body, s.user, s.uid, s.groups, test.user, test.uid, test.groups)
			}
			if test.own == s.certified {
				t.Errorf("%s: the request had the front-proxy certificate: %t", test.name, s.certified)
			}
			for name, values := range test.extra {
				if test.own && !slices.Equal(s.extra[name], values) {
					t.Errorf("%s: the local server saw the extra attributes %v, want %v", test.name, s.extra, test.extra)
				}
			}
			for name, values := range s.header {
				switch folded := strings.ToLower(strings.ReplaceAll(name, "_", "-")); {
				case folded == "authorization" && !test.own, strings.HasPrefix(folded, "x-remote-") && test.own,
					strings.HasPrefix(folded, "x-remote-user") && len(values) > 1, strings.Contains(name, "_"):
					t.Errorf("%s: the local server got %s: %q", test.name, name, values)
				case strings.HasPrefix(folded, "x-remote-extra-") && test.extra != nil && !slices.Equal(values, test.extra[name]),
					strings.HasPrefix(folded, "x-remote-extra-") && test.extra == nil && strings.Contains(folded, "scopes"):
					t.Errorf("%s: the local server got %s: %q, want %q", test.name, name, values, test.extra[name])
				}
			}
			for name := range test.extra {
				if !test.own && s.header[name] == nil {
					t.Errorf("%s: the local server got no %s", test.name, name)
				}
			}
			if s.header.Get("Impersonate-User") != "someone" || s.header.Get("X-Forwarded-For") != "192.0.2.1, 127.0.0.1" {
				t.Errorf("%s: impersonation %q, addresses %q", test.name, s.header.Get("Impersonate-User"), s.header.Get("X-Forwarded-For"))
			}
		}
	}
}

// A client's identity survives a hop, and a client cannot pretend to be a peer.
func TestOnlyPeersCanSetTheHopHeader(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	const path = "/apis/new.example/v2/novelties"
	for name, by := range map[string]*http.Client{"a user": p.user("mallory"), "nobody": p.client(nil, true)} {
		for _, header := range []string{"X-Kubernetes-Peer-Proxied", "x-kubernetes-peer-proxied", "X-Kubernetes-Apiserver-Rerouted", "X-Kubernetes-APIServer-Rerouted"} {
			got := p.atA.get(by, path, header, "true")
			if got.code != http.StatusOK || got.header.Get("X-Served-By") != "b" {
				t.Errorf("%s with %s: %d %s; want it passed on as if there were no header", name, header, got.code, got.body)
			}
			p.atA.get(by, common, header, "true")
			if s, _ := p.a.last(common); s.header.Get("X-Kubernetes-Peer-Proxied")+s.header.Get("X-Kubernetes-Apiserver-Rerouted") != "" {
				t.Errorf("%s with %s: the local server got %v", name, header, s.header)
			}
		}
	}
	peer := p.client(&p.proxies, true)
	got := p.atA.get(peer, path, "X-Remote-User", "alice", "X-Kubernetes-Peer-Proxied", "true")
	if got.code != http.StatusServiceUnavailable || got.header.Get("X-Served-By") != "" {
		t.Errorf("a peer: %d %s; want 503, for there is one hop at most", got.code, got.body)
	}
	if s, _ := p.b.last(path); s.header.Get("X-Kubernetes-Peer-Proxied") != "" {
		t.Errorf("the far server got the header of the hop: %v", s.header)
	}
}

func TestAnonymousAuthCanBeOff(t *testing.T) {
	_, r := one(t, func(_ *world, o *Options) { o.AnonymousAuth = false })
	if got := r.get(r.client(nil, true), common); got.code != http.StatusUnauthorized {
		t.Errorf("without credentials: %d %s, want 401", got.code, got.body)
	}
	if got := r.get(r.user("alice"), common); got.code != http.StatusOK {
		t.Errorf("alice: %d %s", got.code, got.body)
	}
}

func TestWithoutAllowedNamesEveryFrontProxyIsTrusted(t *testing.T) {
	a, r := one(t, func(_ *world, o *Options) { o.RequestHeaderNames = nil })
	other := r.frontCA.issue(subject{name: "other-proxy"})
	if got := r.get(r.client(&other, true), common, "X-Remote-User", "bob"); got.code != http.StatusOK {
		t.Errorf("%d %s", got.code, got.body)
	}
	if s, _ := a.last(common); s.user != "bob" {
		t.Errorf("the local server saw %q, want bob", s.user)
	}
}

func TestConfiguredIdentityHeaders(t *testing.T) {
	a, r := one(t, func(_ *world, o *Options) {
		o.RequestHeaderUsername = []string{"X-Remote-User", "X-Gate-User"}
		o.RequestHeaderExtraPrefix = []string{"X-Remote-Extra-", "X-Gate-Extra-"}
	})
	got := r.get(r.client(&r.proxies, true), common, "X-Gate-User", "bob", "X-Gate-Extra-Team", "red")
	s, _ := a.last(common)
	if got.code != http.StatusOK || s.user != "bob" || s.header.Get("X-Remote-Extra-Team") != "red" || s.header.Get("X-Gate-User") != "" {
		t.Errorf("%d %s; the local server saw %v", got.code, got.body, s.header)
	}
	r.get(r.user("mallory"), common, "X-Gate-User", "root", "X_gate_extra_team", "red")
	if s, _ := a.last(common); s.user != "mallory" || s.header.Get("X-Gate-User") != "" || s.header.Get("X-Remote-Extra-Team") != "" {
		t.Errorf("a client's own were not dropped: %v", s.header)
	}
}

// An unauthenticated client must not keep an HTTP/2 connection busy.
func TestUnauthenticatedConnectionsAreClosed(t *testing.T) {
	_, r := one(t)
	// reused reports whether a request used an open connection.
	reused := func(c *http.Client, headers ...string) (old bool) {
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { old = i.Reused },
		}), http.MethodGet, "https://"+r.front+common, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		if got := do(t, c, request); got.header.Get("Audit-Id") == "" && got.code != http.StatusOK {
			t.Errorf("%d %s", got.code, got.body)
		}
		return old
	}
	for name, headers := range map[string][]string{"nobody": nil, "unknown token": {"Authorization", "Bearer bad"}} {
		c := r.client(nil, true)
		reused(c, headers...)
		await(t, name+" has to connect again", func() bool { return !reused(c, headers...) })
	}
	alice := r.user("alice")
	reused(alice)
	for range 3 {
		if !reused(alice) {
			t.Error("alice had to connect again")
		}
	}
	// All callers of a peer share its connection, so one of them must not cause the others to lose
	// it.
	peer := r.client(&r.proxies, true)
	for name, headers := range map[string][]string{
		"an anonymous caller": {"X-Remote-User", user.Anonymous, "X-Remote-Group", user.AllUnauthenticated},
		"no caller":           {"Authorization", "Bearer bad"},
	} {
		reused(peer, headers...)
		for range 3 {
			if !reused(peer, headers...) {
				t.Errorf("a peer that asks for %s had to connect again", name)
			}
		}
	}
}

func TestMergedDiscoveryNeedsTheLocalServersPermission(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, path := range []string{"/apis", "/api", "/apis/"} {
		if got := p.atA.get(p.client(nil, true), path); got.code != http.StatusForbidden || !strings.HasSuffix(got.status(t).Message, "a says so") {
			t.Errorf("without credentials at %s: %d %s, want the local server's 403", path, got.code, got.body)
		}
	}
	if got := p.atA.get(p.user("alice"), "/apis/new.example"); got.code != http.StatusOK || !strings.Contains(got.body, "new.example/v2") {
		t.Errorf("a group that only a peer knows: %d %s", got.code, got.body)
	}
}
