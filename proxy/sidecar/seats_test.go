package sidecar

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skewproof/skewproof/proxy"
)

// Callers without rights announce large bodies and do not send them. These requests must hold no
// place at a peer, because the peer's server refuses them before it reads a body. The test sends
// more such requests than a peer has places, and no body ever ends.
func TestLargeBodiesWithoutRightsHoldNoPlaces(t *testing.T) {
	const users, each, path = 10, 50, "/apis/new.example/v2/novelties"
	if places := proxy.Reference().Routing.InFlight; users*each <= places {
		t.Fatalf("%d requests are no more than the %d places at a peer", users*each, places)
	}
	p := newPair(t)
	served := behindKubeFilters(t, p.b, nil)
	behindKubeFilters(t, p.a, nil)
	var answered atomic.Int64
	var running sync.WaitGroup
	alice, big := p.user("alice"), make([]byte, 1<<20)
	for i := range users {
		client := p.user(fmt.Sprintf("rightless-%d", i))
		running.Go(func() {
			for range each {
				body, sends := io.Pipe()
				t.Cleanup(func() { _ = sends.Close() })
				go func() { _, _ = sends.Write([]byte("the beginning")) }()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+p.atA.front+path, body)
				if err != nil {
					t.Error(err)
					return
				}
				r.ContentLength = int64(len(big))
				answer, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				answer.Body.Close()
				if answered.Add(1); answer.StatusCode != http.StatusForbidden {
					t.Errorf("%d, want 403", answer.StatusCode)
				}
			}
		})
	}
	for i := range 10 {
		if code, err := p.atA.write(alice, path, fmt.Sprintf("alice-%d", i), big); err != nil || code != http.StatusOK {
			t.Errorf("a large write with rights meanwhile: %d, %v", code, err)
		}
	}
	running.Wait()
	if n, _ := served.written(); answered.Load() != users*each || n != 10 {
		t.Errorf("%d of %d were answered, and %d writes were carried out, want the 10 of alice", answered.Load(), users*each, n)
	}
}
