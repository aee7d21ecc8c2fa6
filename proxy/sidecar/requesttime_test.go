package sidecar

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A request that takes longer than --request-timeout, or than its own parameter timeout, is
// answered with a kube-apiserver's 504. The cause of the delay does not matter: the local server, a
// peer, or the client.
func TestRequestTimeIsLimited(t *testing.T) {
	const novelties = "/apis/new.example/v2/novelties"
	p := newPair(t, func(o *Options) { o.RequestTimeout = 300 * time.Millisecond })
	long := newPair(t)
	hold := func(p *pair) {
		released := make(chan struct{})
		t.Cleanup(func() { close(released) })
		for _, a := range []*apiserver{p.a, p.b} {
			behindKubeFilters(t, a, func(k *kubeAPIServer) {
				k.answer = func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-released:
					case <-r.Context().Done():
					}
				}
			})
		}
	}
	hold(p)
	hold(long)
	alice, other := p.user("alice"), long.user("alice")
	never := func() io.Reader { // a client that sends nothing
		body, end := io.Pipe()
		t.Cleanup(func() { _ = end.Close() })
		return body
	}
	for name, c := range map[string]struct {
		at     *running
		client *http.Client
		method string
		path   string
		body   io.Reader
		length int64
	}{
		"local":                           {p.atA, alice, http.MethodGet, common, nil, 0},
		"peer":                            {p.atA, alice, http.MethodGet, novelties, nil, 0},
		"longer by the parameter, local":  {p.atA, alice, http.MethodGet, common + "?timeout=1h", nil, 0},
		"shorter by the parameter, local": {long.atA, other, http.MethodGet, common + "?limit=1&timeout=100ms", nil, 0},
		"shorter by the parameter, peer":  {long.atA, other, http.MethodGet, novelties + "?timeout=100ms", nil, 0},
		"a short body, local":             {p.atA, alice, http.MethodPost, common, never(), 100},
		"a short body, peer":              {p.atA, alice, http.MethodPost, novelties, never(), 100},
		"a short body, parameter":         {long.atA, other, http.MethodPost, common + "?timeout=100ms", never(), 100},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, c.method, "https://"+c.at.front+c.path, c.body)
			if err != nil {
				t.Fatal(err)
			}
			request.ContentLength = c.length
			got := do(t, c.client, request)
			// The answer may come from the local server's filter. Its Status has no kind.
			var status metav1.Status
			if err := json.Unmarshal([]byte(got.body), &status); err != nil || got.code != http.StatusGatewayTimeout || status.Reason != metav1.StatusReasonTimeout {
				t.Errorf("%d %s, want 504 with the reason Timeout", got.code, got.body)
			}
		})
	}
	for _, peer := range p.atA.report(t).Peers {
		if peer.EjectedUntil != nil {
			t.Errorf("peer %s is avoided, though the time of a request was over", peer.ID)
		}
	}
}

// Streams have no such limit.
func TestStreamsOutliveTheRequestTimeout(t *testing.T) {
	a, r := one(t, func(_ *world, o *Options) { o.RequestTimeout = 50 * time.Millisecond })
	alice := r.user("alice")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.front+common+"?watch=true&timeout=1ms", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := alice.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	behindKubeFilters(t, a, func(k *kubeAPIServer) {
		k.answer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	})
	for range 2 { // after two of these, more than the time of the watch has passed
		if got := r.get(alice, common); got.code != http.StatusGatewayTimeout {
			t.Fatalf("%d %s, want 504", got.code, got.body)
		}
	}
	event := make([]byte, len("event\n"))
	select {
	case a.events <- "event":
	case <-time.After(20 * time.Second):
		t.Fatal("the watch ended")
	}
	if _, err := io.ReadFull(watch.Body, event); err != nil || string(event) != "event\n" {
		t.Errorf("the watch ended: %q, %v", event, err)
	}
}

func TestRequestTime(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": time.Minute, "timeout=5s": 5 * time.Second, "a=b&timeout=5s": 5 * time.Second, "timeout=61s": time.Minute, "timeout=0s": time.Minute,
		"timeout=-5s": time.Minute, "timeout=5": time.Minute, "timeout=x": time.Minute, "timeoutSeconds=5": time.Minute,
		"timeout=5s&timeout=1s": 5 * time.Second, "%74imeout=5s": time.Minute,
	} {
		r, err := http.NewRequest(http.MethodGet, "https://x"+common+"?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := requestTime(r, time.Minute); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}
