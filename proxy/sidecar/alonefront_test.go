package sidecar

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// holding makes the stand-in hold the requests of some callers and paths before its filters. It
// counts the requests that it holds.
func holding(t *testing.T, a *apiserver, holds func(*http.Request) bool) (held *atomic.Int64, release func()) {
	t.Helper()
	held, released := new(atomic.Int64), make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release) // before the server closes
	usual := a.filtered(http.HandlerFunc(a.serve), 0)
	a.set(func() {
		a.filters = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if holds(r) {
				held.Add(1)
				<-released
			}
			usual.ServeHTTP(w, r)
		})
	})
	return held, release
}

// askTogether sends the same GET n times at once, with 100 requests on each HTTP/2 connection. It
// returns the number of answers with each status so far, and a function that waits for all answers.
func (r *running) askTogether(n int, path string, headers ...string) (answered func(code int) int, wait func()) {
	var mu sync.Mutex
	codes := map[int]int{}
	var asking sync.WaitGroup
	var client *http.Client
	for i := range n {
		if i%maxStreams == 0 {
			client = r.client(nil, true)
			r.get(client, "/version") // a connection, on which the requests then are
		}
		by := client
		asking.Go(func() {
			request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "https://"+r.front+path, nil)
			if err != nil {
				r.t.Error(err)
				return
			}
			for h := 0; h < len(headers); h += 2 {
				request.Header.Set(headers[h], headers[h+1])
			}
			answer, err := by.Do(request)
			if err != nil {
				r.t.Error(err)
				return
			}
			answer.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			codes[answer.StatusCode]++
		})
	}
	return func(code int) int {
		mu.Lock()
		defer mu.Unlock()
		return codes[code]
	}, asking.Wait
}

// Callers without credentials occupy a bounded number of connections to the local server, for all
// requests: merged discovery, before which the sidecar asks whether they may see it, and paths and
// queries whose answers may last.
func TestNothingAvoidsTheBoundOfConnections(t *testing.T) {
	const asked = aloneBound/4 + 50
	for name, c := range map[string]struct {
		path    string
		headers []string
		code    int // of the local server
	}{
		"discovery":       {path: "/apis", code: http.StatusForbidden},
		"a watch":         {path: common + "?watch=1", code: http.StatusForbidden},
		"a proxied path":  {path: "/apis/both.example/v1/namespaces/n/commons/x/proxy", code: http.StatusForbidden},
		"a made-up token": {path: common + "?watch=1", headers: []string{"Authorization", "Bearer made-up"}, code: http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			a, r := one(t)
			a.set(func() { a.forbids = mayNot(user.Anonymous) })
			path, _, _ := strings.Cut(c.path, "?")
			held, release := holding(t, a, func(r *http.Request) bool {
				return r.URL.Path == path && r.Header.Get("X-Remote-User") != selfUser.Name
			})
			answered, wait := r.askTogether(asked, c.path, c.headers...)
			await(t, "each request is held or refused", func() bool {
				return int(held.Load())+answered(http.StatusTooManyRequests) == asked
			})
			if n := held.Load(); n != aloneBound/4 {
				t.Errorf("%d requests occupy a connection each, want %d", n, aloneBound/4)
			}
			release()
			wait()
			if n := answered(c.code); n != aloneBound/4 {
				t.Errorf("%d were answered %d, want %d", n, c.code, aloneBound/4)
			}
			if got := r.get(r.client(nil, true), c.path, c.headers...); got.code != c.code {
				t.Errorf("afterwards: %d %s, want %d", got.code, got.body, c.code)
			}
		})
	}
}

// An answer to a stream may last for ever, so a stream counts only until its answer begins.
func TestStreamsCountOnlyUntilTheirAnswersBegin(t *testing.T) {
	_, r := one(t)
	var client *http.Client
	for i := range aloneBound/4 + 10 {
		if i%maxStreams == 0 {
			client = r.client(nil, true)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.front+common+"?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() // all watches last until the end of the test
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("watch %d: %d, want 200", i+1, answer.StatusCode)
		}
	}
}

// The sidecar asks the local server whether a caller may see discovery. Anonymous callers'
// questions share a connection, one after the other. Otherwise each would cost a TLS handshake.
func TestAnonymousDiscoveryNeedsNoHandshakeEach(t *testing.T) {
	a, r := one(t)
	var mu sync.Mutex
	asked, connections := 0, map[string]bool{}
	usual := a.filtered(http.HandlerFunc(a.serve), 0)
	a.set(func() {
		a.grants = func(at authorizer.Attributes) bool { return at.GetPath() == "/apis" }
		a.filters = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/apis" && r.Header.Get("X-Remote-User") == user.Anonymous {
				mu.Lock()
				asked++
				connections[r.RemoteAddr] = true
				mu.Unlock()
			}
			usual.ServeHTTP(w, r)
		})
	})
	const times = 20
	for range times {
		if got := r.get(r.client(nil, true), "/apis"); got.code != http.StatusOK {
			t.Fatalf("%d %s", got.code, got.body)
		}
	}
	if asked != times || len(connections) > 2 {
		t.Errorf("%d questions on %d connections, want %d on one", asked, len(connections), times)
	}
}
