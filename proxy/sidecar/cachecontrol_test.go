package sidecar

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A kube-apiserver says in every answer whether caches may store it (k8s.io/apiserver,
// WithCacheControl). The sidecar must do this too, also in its own answers, and only once in each
// answer.
func TestEveryAnswerHasCacheControl(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	alice, nobody := p.user("alice"), p.client(nil, true)
	const unreachable = "/apis/new.example/v2/namespaces/default/novelties"
	check := func(what string, got answer, code int, want string) {
		t.Helper()
		if said := got.header["Cache-Control"]; got.code != code || !slices.Equal(said, []string{want}) {
			t.Errorf("%s: %d, Cache-Control %q; want %d, %q", what, got.code, said, code, want)
		}
	}
	ask := func(c *http.Client, method, path string, header ...string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+p.atA.front+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return do(t, c, r)
	}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	check("200 of the local server", ask(alice, "GET", common), 200, cacheControl)
	check("200 of a peer", ask(alice, "GET", unreachable), 200, cacheControl)
	check("404 of the local server", ask(alice, "GET", "/apis/nobodys.example/v1/x"), 404, cacheControl)
	check("401 of the sidecar", ask(p.client(new(p.frontCA.issue(subject{name: "alice"})), true), "GET", common), 401, cacheControl)
	check("403 of the sidecar: an identity that headers cannot carry", ask(p.user(" alice"), "GET", common), 403, cacheControl)
	check("403 of the local server", ask(nobody, "GET", debugPeersPath), 403, cacheControl)
	check("400 of the sidecar", ask(p.client(new(p.ca.issue(subject{name: "alice"})), false), "GET", common, "Connection", "Impersonate-Nothing"), 400, cacheControl)
	check("200 of a page of the sidecar's own", ask(p.user("root", "system:masters"), "GET", metricsPath), 200, cacheControl)
	check("merged discovery", ask(alice, "GET", "/apis", "Accept", aggregated), 200, "public")
	check("merged discovery in the older format", ask(alice, "GET", "/apis", "Accept", "application/json"), 200, cacheControl)
	check("406 of merged discovery", ask(alice, "GET", "/apis", "Accept", "image/png"), 406, cacheControl)
	p.atB.stop()
	<-p.atB.ended
	unavailable := ask(alice, "GET", unreachable)
	check("503 of the sidecar", unavailable, 503, cacheControl)
	if !strings.Contains(unavailable.body, "novelties") {
		t.Errorf("the 503 is not the sidecar's own: %s", unavailable.body)
	}
	p.a.vanish()
	check("503 of the sidecar: the local server does not answer", ask(alice, "GET", common), 503, cacheControl)
}
