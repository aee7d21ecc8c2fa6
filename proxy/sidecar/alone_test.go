package sidecar

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/skewproof/skewproof/proxy/internal/replay"
)

// Requests that each occupy a connection to the local server are bounded, in total and for each
// user (a quarter of the free places). Requests that share connections are not bounded, and
// upgrades, whose clients have a connection each, are not either.
func TestRequestsWithConnectionsOfTheirOwnAreBound(t *testing.T) {
	arrived, released := make(chan struct{}, 4*aloneBound), make(chan struct{})
	l := newLocal(mustURL(t, "https://127.0.0.1:1"), fakeTransport(func(r *http.Request) (*http.Response, error) {
		arrived <- struct{}{}
		<-released
		answer := answers(http.StatusOK, "local")
		answer.Request = r
		return answer, nil
	}), &headerNames{own: standardNames}, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	as := func(name string, anonymous bool, target string, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, target, body)
		u := &user.DefaultInfo{Name: name}
		if anonymous {
			u.Groups = []string{user.AllUnauthenticated}
		}
		w := httptest.NewRecorder()
		withInfo(l).ServeHTTP(w, r.WithContext(apirequest.WithUser(r.Context(), u)))
		return w
	}
	// begin sends a request, and reports whether the local server gets it.
	begin := func(name string, anonymous bool, target string, body io.Reader) bool {
		t.Helper()
		ended := make(chan *httptest.ResponseRecorder, 1)
		running.Go(func() { ended <- as(name, anonymous, target, body) })
		select {
		case <-arrived:
			return true
		case w := <-ended:
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
				t.Fatalf("%s: %d %s; want 429 that says when to try again", name, w.Code, w.Body)
			}
			return false
		}
	}
	fill := func(name string) (n int) {
		for begin(name, true, common, nil) {
			n++
		}
		return n
	}
	if n := fill("user"); n != aloneBound/4 {
		t.Errorf("one user has %d requests at a time, want %d", n, aloneBound/4)
	}
	long := func() io.Reader { return strings.NewReader(strings.Repeat("x", replay.Bound+1)) }
	for name, c := range map[string]struct {
		anonymous bool
		target    string
		body      io.Reader
		counts    bool
	}{
		"a long body, which cannot be sent again": {false, common, long(), true},
		"a stream that is not answered yet":       {true, "/api/v1/namespaces/n/pods/p/exec", nil, true},
		"a request to a pod":                      {false, "/api/v1/namespaces/n/pods/p/proxy/upload", nil, true},
		"an upload to a pod":                      {false, "/api/v1/namespaces/n/pods/p/proxy/upload", long(), true},
		"a request that shares a connection":      {false, common, strings.NewReader("short"), false},
		"a stream of a known user":                {false, "/api/v1/namespaces/n/pods/p/exec", nil, false},
	} {
		if counted := !begin("user", c.anonymous, c.target, c.body); counted != c.counts {
			t.Errorf("%s: counts %t, want %t", name, counted, c.counts)
		}
	}
	total := aloneBound / 4
	for i := 0; total <= aloneBound; i++ { // the last users get one place each
		n := fill(fmt.Sprintf("user-%d", i))
		if total += n; n == 0 {
			break
		}
	}
	if total != aloneBound {
		t.Errorf("all together have %d requests at a time, want %d", total, aloneBound)
	}
	close(released)
	running.Wait()
	if l.alone.places.Used() != 0 || l.alone.places.Callers() != 0 {
		t.Errorf("%d requests of %d users still count", l.alone.places.Used(), l.alone.places.Callers())
	}
	if !begin("user", true, common, nil) {
		t.Error("a user whose requests have ended gets no place")
	}
	running.Wait()
}
