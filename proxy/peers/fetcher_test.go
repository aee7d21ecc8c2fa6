package peers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

const addressA, addressB = "192.0.2.1:6443", "192.0.2.2:6443"

// fetching is a fetcher with two peers, a and b, on synctest's clock.
type fetching struct {
	t       *testing.T
	store   *proxy.Store
	fetcher *fetcher
	metrics *Metrics
	network *network
	a, b    *server
}

// newFetching makes the peers and their network, without a fetcher.
func newFetching(t *testing.T, policy proxy.Policy) *fetching {
	f := &fetching{t: t, store: proxy.NewStore(policy, "self"), a: newServer(t, "v1.36.3", "apps/v1 deployments"), b: newServer(t, "v1.37.1", "batch/v1 jobs")}
	f.network = &network{servers: map[string]http.Handler{addressA: f.a, addressB: f.b}}
	f.metrics = NewMetrics(f.store)
	return f
}

func withFetcher(t *testing.T, policy proxy.Policy, test func(*testing.T, *fetching)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFetching(t, policy)
		sources, err := New(Config{Store: f.store, PeerTransport: f.network, Metrics: f.metrics, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		f.fetcher = sources.fetcher
		defer start(t, func(ctx context.Context) error { f.fetcher.run(ctx); return nil })()
		test(t, f)
	})
}

// tell passes events on as a lease watch does.
func (f *fetching) tell(events ...proxy.Event) {
	f.store.Observe(events...)
	f.fetcher.learnt(events)
	synctest.Wait()
}

func (f *fetching) live(id proxy.ServerID, incarnation, address string) {
	f.tell(proxy.PeerAppeared{ID: id, Incarnation: incarnation}, proxy.PeerAddress{ID: id, Address: address})
}

func (f *fetching) peer(id proxy.ServerID) proxy.PeerView {
	f.t.Helper()
	synctest.Wait()
	for _, p := range f.store.Table().Peers() {
		if p.ID == id {
			return p
		}
	}
	f.t.Fatalf("peer %s is not known", id)
	return proxy.PeerView{}
}

// knows reports whether the table takes a resource from the peer.
func (f *fetching) knows(gv, resource string) bool {
	synctest.Wait()
	return len(capable(f.store, gv, resource)) > 0
}

func capable(store *proxy.Store, gv, resource string) []proxy.ServerID {
	var ids []proxy.ServerID
	parsed, _ := schema.ParseGroupVersion(gv)
	for _, root := range []proxy.Root{proxy.RootCore, proxy.RootGroups} {
		for _, s := range store.Table().Sources(root) {
			if !s.Local && discovery.NewIndex(s.Groups).Resource(parsed.Group, parsed.Version, resource, "") {
				ids = append(ids, proxy.ServerID(s.Server))
			}
		}
	}
	return ids
}

func (f *fetching) count(kind string) float64 {
	return testutil.ToFloat64(f.metrics.errors.WithLabelValues(kind))
}

func TestFetcherReference(t *testing.T) {
	withFetcher(t, proxy.Reference(), func(t *testing.T, f *fetching) {
		f.live("a", "i1", addressA)
		f.live("b", "i1", addressB)
		if !f.knows("apps/v1", "deployments") || !f.knows("batch/v1", "jobs") || !f.knows("v1", "pods") {
			t.Fatalf("not everything was fetched: %+v", f.store.Table().Peers())
		}
		if v := f.peer("b").Version; v != "v1.37.1" {
			t.Fatalf("version %q", v)
		}
		f.a.taken()
		f.b.taken()

		// Only the peer that has changed is asked.
		f.live("b", "i2", addressB)
		if got := len(f.a.taken()); got != 0 {
			t.Errorf("a was asked %d times for b's lease", got)
		}
		// Another process gets no conditional requests. If its documents lack something, this must
		// not be taken from the documents of the old process.
		if got := f.b.taken(); len(got) != 2 || got[0] != 200 || got[1] != 200 {
			t.Errorf("a new process answered %v, want the whole documents", got)
		}

		// Peers are asked periodically. They only confirm unchanged documents.
		generation, before := f.store.Table().DocumentGeneration(), f.peer("a").Learned[0]
		time.Sleep(3700 * time.Millisecond)
		if got := f.peer("a").Learned[0]; !got.After(before) {
			t.Errorf("the age of a confirmed document is not renewed: %v", got)
		}
		if got := f.a.taken(); len(got) != 2 || got[0] != 304 || got[1] != 304 {
			t.Errorf("the second round answered %v within 3.7 s, want 304 twice", got)
		}
		if got := f.store.Table().DocumentGeneration(); got != generation {
			t.Errorf("confirmed documents have changed the generation from %d to %d", generation, got)
		}

		// A failure discards nothing, and the fetch is repeated. When the peer works again, this is
		// noticed within the longest delay.
		f.network.set(addressA, syscall.ECONNREFUSED)
		time.Sleep(time.Minute)
		if p := f.peer("a"); p.Failed[0] != "it refused the connection" || !f.knows("apps/v1", "deployments") {
			t.Fatalf("after a failure: %+v", p)
		}
		if f.count(failedFetch) < 20 {
			t.Errorf("%v failures counted", f.count(failedFetch))
		}
		f.network.set(addressA, nil)
		f.a.set(func() { f.a.apis = document("apps/v1 deployments daemonsets") })
		time.Sleep(2 * time.Second)
		if p := f.peer("a"); p.Failed[0] != "" || !f.knows("apps/v1", "daemonsets") {
			t.Fatalf("after it healed: %+v", p)
		}

		// A peer that is gone is not asked any more.
		f.tell(proxy.PeerGone{ID: "a"})
		f.a.taken()
		time.Sleep(5 * time.Minute)
		f.fetcher.mu.Lock()
		defer f.fetcher.mu.Unlock()
		if got := f.a.taken(); len(got) > 0 || len(f.fetcher.last) != 1 || len(f.fetcher.asked) != 1 {
			t.Errorf("a peer that is gone was asked %d times, or is remembered", len(got))
		}
	})
}

// If only one document could be fetched, this document is used.
func TestFetcherHalfFailed(t *testing.T) {
	withFetcher(t, proxy.Reference(), func(t *testing.T, f *fetching) {
		f.a.failing["/api"] = respond(500)
		f.live("a", "i1", addressA)
		p := f.peer("a")
		if p.Failed[proxy.RootCore] != "it answered 500" || p.Failed[proxy.RootGroups] != "" || !f.knows("apps/v1", "deployments") || f.knows("v1", "pods") {
			t.Fatalf("%+v", p)
		}
		f.a.set(func() { clear(f.a.failing) })
		time.Sleep(200 * time.Millisecond)
		if !f.knows("v1", "pods") {
			t.Fatal("not asked again for the document that failed")
		}
	})
}

// The fetch from a peer without an address fails. The peer is asked as soon as its address is
// known.
func TestFetcherWaitsForAddress(t *testing.T) {
	withFetcher(t, proxy.Reference(), func(t *testing.T, f *fetching) {
		f.tell(proxy.PeerAppeared{ID: "a", Incarnation: "i1"})
		if p := f.peer("a"); p.Failed[0] != unresolved || p.Failed[1] != unresolved || f.count(failedResolution) == 0 {
			t.Fatalf("%+v, %v counted", p, f.count(failedResolution))
		}
		time.Sleep(30 * time.Minute)
		f.tell(proxy.PeerAddress{ID: "a", Address: addressA})
		if !f.knows("apps/v1", "deployments") {
			t.Fatal("not asked when its address became known")
		}
		if f.count(failedFetch) != 0 {
			t.Error("an unknown address was counted as a failed fetch")
		}
	})
}

// If a peer does not answer, its fetch ends after the timeout. It does not delay other peers.
func TestFetcherTogether(t *testing.T) {
	withFetcher(t, proxy.Reference(), func(t *testing.T, f *fetching) {
		f.a.failing["/api"], f.a.failing["/apis"], f.a.failing["/version"] = hang, hang, hang
		began := time.Now()
		f.live("a", "i1", addressA)
		f.live("b", "i1", addressB)
		if !f.knows("batch/v1", "jobs") || time.Since(began) > 0 {
			t.Fatal("a slow peer holds up another")
		}
		time.Sleep(5*time.Second + time.Millisecond)
		if p := f.peer("a"); p.Failed[0] != "it did not answer in time" || p.Failed[1] != "it did not answer in time" {
			t.Fatalf("after the deadline: %+v", p)
		}
	})
}

// The answer of a process that has ended says nothing about the next process.
func TestFetcherRestartMeanwhile(t *testing.T) {
	withFetcher(t, proxy.Reference(), func(t *testing.T, f *fetching) {
		release := make(chan struct{})
		f.a.failing["/version"] = func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		f.live("a", "i1", addressA)
		f.a.set(func() { clear(f.a.failing); f.a.apis = document("apps/v1 daemonsets") })
		f.tell(proxy.PeerAppeared{ID: "a", Incarnation: "i2"})
		close(release)
		if !f.knows("apps/v1", "daemonsets") || f.knows("apps/v1", "deployments") {
			t.Fatalf("%+v", f.store.Table().Peers())
		}
	})
}

// Upstream: a peer whose address is not known yet is retried, and dropped in the end. Upstream does
// not wait for the address.
func TestFetcherUpstreamUnresolved(t *testing.T) {
	withFetcher(t, proxy.Upstream134(), func(t *testing.T, f *fetching) {
		f.tell(proxy.PeerAppeared{ID: "a", Incarnation: "i1"})
		time.Sleep(time.Hour)
		if got := f.count(failedResolution); got != 6 {
			t.Fatalf("%v attempts, want the first and 5 retries", got)
		}
		if crashed := f.store.Table().Crashed(); crashed != "" {
			t.Fatalf("1.34 does not die of an unknown address: %s", crashed)
		}
		f.tell(proxy.PeerAddress{ID: "a", Address: addressA})
		time.Sleep(time.Hour)
		if f.knows("apps/v1", "deployments") {
			t.Fatal("the preset asks without a lease event")
		}
	})
	withFetcher(t, proxy.Upstream134(), func(t *testing.T, f *fetching) {
		f.network.set(addressA, errors.New("unreachable"))
		f.live("a", "i1", addressA)
		if f.store.Table().Crashed() == "" {
			t.Fatal("1.34 dies of a failed fetch")
		}
	})
}

// Without a source of randomness in the configuration, each of several servers has its own jitter.
// Otherwise all of them would ask a peer at the same time.
func TestSourcesHaveJitter(t *testing.T) {
	draw := func(random func() float64) (drawn [4]float64) {
		sources, err := New(Config{Store: proxy.NewStore(proxy.Reference(), "self"), PeerTransport: roundTrip(nil), Random: random})
		if err != nil {
			t.Fatal(err)
		}
		if sources.fetcher.schedule.random == nil {
			t.Fatal("there is no jitter")
		}
		for i := range drawn {
			if drawn[i] = sources.fetcher.schedule.random(); drawn[i] < 0 || drawn[i] >= 1 {
				t.Errorf("%v is not in [0, 1)", drawn[i])
			}
		}
		return drawn
	}
	if one, another := draw(nil), draw(nil); one == another {
		t.Errorf("two servers have the same jitter: %v", one)
	}
	if got := draw(func() float64 { return 0.25 }); got != [4]float64{0.25, 0.25, 0.25, 0.25} {
		t.Errorf("the configuration's source of randomness is not used: %v", got)
	}
}
