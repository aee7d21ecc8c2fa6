package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestInFlightIsBounded(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 2
	held := make(chan struct{})
	began := make(chan string, 10)
	s := newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		answer := says(200, "")
		answer.Body = closeFunc{io.MultiReader(readerFunc(func([]byte) (int, error) { <-held; return 0, io.EOF })), func() {}}
		answer.ContentLength = -1
		began <- r.URL.RequestURI()
		return answer, nil
	}))
	var running sync.WaitGroup
	started := 0
	start := func(target string) {
		running.Go(func() { s.ask("GET", target, "") })
		if got := <-began; got != target {
			t.Errorf("began %s, want %s", got, target)
		}
		started++
		until(t, "the answer's headers", func() bool { return len(s.seen.outcomes()) == started })
	}
	start(gadgetsPath + "/1")
	start(gadgetsPath + "/2")
	got := s.ask("POST", gadgetsPath, "x")
	if got.Code != 503 || !strings.Contains(got.Body.String(), "too many requests") || got.Header().Get("Retry-After") == "" {
		t.Errorf("the third: %d %v %s, want 503 after which anything may be repeated", got.Code, got.Header(), got.Body)
	}
	if diff := cmp.Diff([]string{"a answered", "a answered", "a busy"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if p := s.store.Table().Peers()[0]; !p.EjectedUntil.IsZero() {
		t.Error("the peer is avoided though it is only busy")
	}
	started++
	start(gadgetsPath + "?watch=1") // streams do not count
	close(held)
	running.Wait()
	if n := len(s.inFlight.peers); n != 0 {
		t.Errorf("%d peers have requests in flight, want none", n)
	}
}

func TestInFlightIsReleasedByAborts(t *testing.T) {
	policy := Reference()
	policy.Routing.InFlight = 1
	s := newShell(t, policy, capablePeers(nil, "a"), transportFunc(func(r *http.Request) (*http.Response, error) {
		answer := says(200, "")
		answer.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		return answer, nil
	}))
	for range 3 {
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("ended with %v, want http.ErrAbortHandler", got)
				}
			}()
			s.ask("GET", gadgetsPath, "")
		}()
	}
	if diff := cmp.Diff([]string{"a answered", "a answered", "a answered"}, s.seen.outcomes()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}
