package sidecar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// flood sends requests from a number of workers until stop, and ignores the answers.
func flood(workers int, stop <-chan struct{}, send func()) (ended func()) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					send()
				}
			}
		})
	}
	return running.Wait
}

// write sends a write with this body, and returns the status.
func (r *running) write(c *http.Client, path, id string, body []byte) (int, error) {
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "https://"+r.front+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Audit-Id", id)
	answer, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	return answer.StatusCode, nil
}

// A kube-apiserver ends an HTTP/2 connection after a request of an anonymous caller, after a
// request with a token that it refuses, and with --goaway-chance after any request. The requests of
// one caller must not make the writes of another caller fail. No write may be carried out twice.
func TestClosedConnectionsCostNobodyElseAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		chance    float64
		anonymous bool
		tokens    func() string // of the other callers
	}{
		"anonymous callers": {anonymous: true},
		"--goaway-chance":   {chance: 0.02},
		"refused tokens":    {anonymous: true, tokens: func() string { return fmt.Sprint("bad-", rand.IntN(1000)) }}, // new and known tokens
	} {
		for where, path := range map[string]string{"local": common, "peer": "/apis/new.example/v2/novelties"} {
			t.Run(name+", "+where, func(t *testing.T) {
				p := newPair(t)
				servers := map[string]*kubeAPIServer{}
				for _, a := range []*apiserver{p.a, p.b} {
					servers[a.name] = behindKubeFilters(t, a, func(k *kubeAPIServer) { k.goawayChance = c.chance })
				}
				served := servers["a"]
				if where == "peer" {
					served = servers["b"]
				}
				stop := make(chan struct{})
				nobody := p.client(nil, false)
				alice, bob := p.user("alice"), p.user("bob")
				other := nobody
				if !c.anonymous {
					other = bob
				}
				ended := flood(4, stop, func() {
					r, _ := http.NewRequest(http.MethodGet, "https://"+p.atA.front+path, nil)
					if c.tokens != nil {
						r.Header.Set("Authorization", "Bearer "+c.tokens())
					}
					if answer, err := other.Do(r); err == nil {
						answer.Body.Close()
					}
				})
				const workers, each = 8, 40
				body := bytes.Repeat([]byte("x"), 700<<10)
				var failed, sent atomic.Int64
				var writing sync.WaitGroup
				for worker := range workers {
					writing.Go(func() {
						for i := range each {
							code, err := p.atA.write(alice, path, fmt.Sprintf("%d-%d", worker, i), body[:len(body)>>(i%6)])
							sent.Add(1)
							if err != nil || code != http.StatusOK {
								failed.Add(1)
							}
						}
					})
				}
				writing.Wait()
				close(stop)
				ended()
				if n := failed.Load(); n > 0 {
					t.Errorf("%d of %d writes failed", n, sent.Load())
				}
				if n, twice := served.written(); int64(n) < sent.Load()-failed.Load() || len(twice) > 0 {
					t.Errorf("%d of %d writes were carried out, and %v repeatedly", n, sent.Load(), twice)
				}
			})
		}
	}
}
