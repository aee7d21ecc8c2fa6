package proxy_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/peers"
)

// subject is this package under a preset, with the same way of fetching that peers has, on the bubble's clock.
type subject struct {
	handler  http.Handler
	store    *proxy.Store
	schedule *peers.Schedule
	world    *world
	choice   int
	events   chan func()
}

func newSubject(ctx context.Context, t *testing.T, policy proxy.Policy, w *world) *subject {
	t.Helper()
	s := &subject{store: proxy.NewStore(policy, "self"), schedule: peers.NewSchedule(policy, nil), world: w, events: make(chan func(), 8)}
	s.store.Observe(proxy.LocalFetched{Roots: w.local, At: time.Now()}, proxy.Synced{})
	h, err := proxy.New(proxy.Config{
		Store: s.store, Local: http.HandlerFunc(s.serveLocal), Transport: w,
		Pick: func(n int) int { return s.choice % n },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.handler = h
	go s.run(ctx)
	return s
}

// serveLocal is the local server: what it is asked for, and its own discovery.
func (s *subject) serveLocal(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis" {
		serveLocal(rw, r)
		return
	}
	discovery.NewDocument("/apis", s.world.local[1]).ServeHTTP(rw, r)
}

func (s *subject) appeared(id, holder string) {
	s.events <- func() {
		s.store.Observe(proxy.PeerAppeared{ID: proxy.ServerID(id), Incarnation: holder})
		s.schedule.Lease(proxy.ServerID(id), time.Now())
	}
}

func (s *subject) gone(id string) {
	s.events <- func() {
		s.store.Observe(proxy.PeerGone{ID: proxy.ServerID(id)})
		s.schedule.Gone(proxy.ServerID(id), time.Now())
	}
}

func (s *subject) address(id, address string) {
	s.store.Observe(proxy.PeerAddress{ID: proxy.ServerID(id), Address: address})
}

func (s *subject) defined(versions []string) {
	e := proxy.Extensions{At: time.Now()}
	for _, v := range versions {
		e.CustomResources = append(e.CustomResources, schema.GroupVersionResource{Group: "example.com", Version: v, Resource: "widgets"})
	}
	s.store.Observe(e)
}

// run does what package peers does, without leases and connections.
func (s *subject) run(ctx context.Context) {
	changed, stop := s.store.Subscribe()
	defer stop()
	for {
		for _, round := range s.schedule.Due(time.Now()) {
			results := s.fetch()
			s.store.Observe(proxy.Fetched{Results: results, At: time.Now()})
			s.schedule.Finished(round, slices.ContainsFunc(results, s.failed), time.Now())
		}
		s.store.Observe(proxy.Tick{At: time.Now()})
		timer := time.NewTimer(s.wait())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case f := <-s.events:
			f()
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (s *subject) wait() time.Duration {
	wait := time.Hour
	if at, ok := s.schedule.Wake(); ok {
		wait = min(wait, max(0, time.Until(at)))
	}
	if at, ok := s.store.Table().Wake(); ok {
		wait = min(wait, max(0, time.Until(at)))
	}
	return wait
}

func (s *subject) failed(r proxy.FetchResult) bool {
	return !peers.Succeeded(s.store.Table().Policy().Fetching, r)
}

// fetch asks every peer that lives.
func (s *subject) fetch() []proxy.FetchResult {
	var results []proxy.FetchResult
	for _, p := range s.store.Table().Peers() {
		if !p.Live {
			continue
		}
		result := proxy.FetchResult{ID: p.ID, Incarnation: p.Incarnation}
		for i := range roots {
			s.world.mu.Lock()
			peer, ok := s.world.peers[p.Address]
			switch {
			case !ok:
				result.Roots[i].Failed = "no address"
			case peer.cut:
				result.Roots[i].Failed = "no connection"
			case peer.down[i]:
				result.Roots[i].Failed = "500"
			default:
				result.Roots[i].Groups = peer.serves[i]
			}
			s.world.mu.Unlock()
		}
		results = append(results, result)
	}
	return results
}
