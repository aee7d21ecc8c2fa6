package sidecar

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// identities returns the users whose requests for a path the server has served.
func (a *apiserver) identities(path string) (users []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seen {
		if s.path == path {
			users = append(users, s.user)
		}
	}
	return users
}

// The server trusts another front-proxy authority and names only that one to clients, as in the
// middle of a rotation. Then a request must not fail with 401, which would tell the client that its
// credentials are bad. It must not run as system:anonymous either.
func TestLostIdentityAtTheLocalServerIs503(t *testing.T) {
	t.Parallel()
	a, r := one(t)
	alice := r.user("alice")
	if got := r.get(alice, common); got.code != http.StatusOK {
		t.Fatalf("%d %s", got.code, got.body)
	}
	other := newAuthority(t, "other front-proxy")
	a.set(func() { a.front, a.hint = pool(other), pool(other) })
	for i := range 4 { // the first 401 closes the connection; later requests use new ones
		got := r.get(alice, common)
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.status(t).Message, "credentials") {
			t.Errorf("request %d: %d %s; want 503 that names the credentials", i, got.code, got.body)
		}
	}
	if got := r.onAdmin("/readyz"); got.code == http.StatusOK || !strings.Contains(got.body, "[-]proxy-local-credentials failed: the local kube-apiserver does not accept") {
		t.Errorf("readiness: %d %s", got.code, got.body)
	}
	if got := r.onAdmin("/metrics").body; !strings.Contains(got, "\nskewproof_proxy_local_credentials_refused_total 4\n") {
		t.Errorf("the metric does not count 4 refused requests: %s", got)
	}
	a.set(func() { a.front, a.hint = pool(r.frontCA), pool(other) }) // only the hint differs, which must not matter
	await(t, "the certificate is accepted again", func() bool { return r.get(alice, common).code == http.StatusOK })
	for _, user := range a.identities(common) {
		if user != "alice" {
			t.Errorf("a request of alice ran as %s", user)
		}
	}
	r.awaitReady()
}

// Without any front-proxy authority, the server ignores certificates and identity headers. It takes
// every caller for anonymous.
func TestServerThatIgnoresIdentityHeadersIsNoticed(t *testing.T) {
	t.Parallel()
	a, r := one(t)
	a.set(func() {
		a.headers = &identityNames{user: []string{"X-Other-User"}, group: []string{"X-Other-Group"}, extra: []string{"X-Other-Extra-"}}
	})
	a.restart() // a new process has the new flags
	await(t, "it is not ready", func() bool { return strings.Contains(r.onAdmin("/readyz").body, "[-]proxy-local-credentials") })
	alice, before := r.user("alice"), len(a.identities(common))
	for range 4 {
		got := r.get(alice, common)
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("%d %s; want 503 that says when to try again", got.code, got.body)
		}
	}
	if n := len(a.identities(common)); n != before {
		t.Errorf("the local server was asked %d times, as %v", n-before, a.identities(common)[before:])
	}
	a.set(func() { a.headers = standardNames })
	await(t, "it is accepted again", func() bool { return r.get(alice, common).code == http.StatusOK })
	if users := a.identities(common)[before:]; !slices.Equal(users, []string{"alice"}) {
		t.Errorf("served as %q, want alice alone", users)
	}
	r.awaitReady()
}

// A 401 of a pod, or of an aggregated API server, is about the client.
func TestA401OfSomebodyElseIsPassedOn(t *testing.T) {
	_, r := one(t)
	for _, path := range []string{common + "/x/proxy/login", common + "/answers-401"} {
		got := r.get(r.user("alice"), path)
		if got.code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s; want 401", path, got.code, got.body)
		}
	}
	if got := r.onAdmin("/readyz"); got.code != http.StatusOK {
		t.Errorf("readiness: %d %s", got.code, got.body)
	}
}

func TestPeerThatRefusesOurCredentialsIs503(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	const path = "/apis/new.example/v2/novelties"
	alice := p.user("alice")
	if got := p.atA.get(alice, path); got.code != http.StatusOK {
		t.Fatalf("%d %s", got.code, got.body)
	}
	other := newAuthority(t, "other front-proxy")
	writeFile(t, p.dir, "front-proxy-ca-b.crt", other.pem)
	await(t, "b refuses a", func() bool { return p.atA.get(alice, path).code != http.StatusOK })
	for i := range 4 {
		got := p.atA.get(alice, path)
		if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "it does not accept this server's credentials") {
			t.Errorf("request %d: %d %s; want 503 that names the reason", i, got.code, got.body)
		}
	}
	for _, user := range p.b.identities(path) {
		if user != "alice" {
			t.Errorf("a request of alice ran as %s", user)
		}
	}
	if got := p.atA.onAdmin("/metrics").body; !strings.Contains(got, `skewproof_proxy_attempts_total{outcome="unauthorized"}`) {
		t.Errorf("no metric: %s", got)
	}
	await(t, "/debug/peers names the reason", func() bool {
		return strings.Contains(p.atA.onAdmin(debugPeersPath).body, "it does not accept this server's front-proxy certificate")
	})
}
