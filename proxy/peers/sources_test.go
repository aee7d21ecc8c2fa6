package peers

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/skewproof/skewproof/proxy"
)

// whole has all sources of one server on a fake cluster, with peers a and b, on synctest's clock.
type whole struct {
	*fetching
	client  *fake.Clientset
	etcd    *fakeEtcd
	sources *Sources
}

func withSources(t *testing.T, policy proxy.Policy, objects []runtime.Object, prepare func(*whole), test func(*testing.T, *whole)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		peers := objects == nil
		if peers {
			objects = []runtime.Object{identityLease("a", "i1", now), identityLease("b", "i1", now), identityLease("self", "me", now)}
		}
		w := &whole{client: fake.NewClientset(objects...), etcd: newFakeEtcd(t), fetching: newFetching(t, policy)}
		w.network.servers[localServer.Host] = newServer(t, "v1.36.3", "policy/v1 poddisruptionbudgets")
		if peers {
			w.renew("a", addressA)
			w.renew("b", addressB)
		}
		if prepare != nil {
			prepare(w)
		}
		sources, err := New(Config{
			Store: w.store, Client: w.client, Etcd: w.etcd, Metrics: w.metrics, Dynamic: newDynamic(),
			PeerTransport: w.network, LocalTransport: w.network,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.sources = sources
		// synctest fails the test if a goroutine remains, so this also checks that Run ends all its
		// goroutines.
		defer start(t, sources.Run)()
		// This is the publisher of this server itself. Its key shows that the watch works.
		own := Publisher{Etcd: w.etcd, Server: "self", Address: "192.0.2.9:6443", Ready: func() bool { return true }}
		defer start(t, own.Run)()
		synctest.Wait()
		test(t, w)
	})
}

// renew renews the key of a server once.
func (w *whole) renew(id proxy.ServerID, address string) {
	w.t.Helper()
	if err := w.etcd.Renew(w.t.Context(), id, address); err != nil {
		w.t.Fatal(err)
	}
}

func TestSourcesSynced(t *testing.T) {
	withSources(t, proxy.Reference(), nil, nil, func(t *testing.T, w *whole) {
		time.Sleep(time.Second)
		if !w.knows("apps/v1", "deployments") || !w.knows("batch/v1", "jobs") || !w.sources.HasSynced() || !w.store.Table().LocalKnown() {
			t.Fatalf("after a second: synced %v, %+v", w.sources.HasSynced(), w.store.Table().Peers())
		}
		if d := decide(w.store, "batch/v1", "jobs"); d.Action != proxy.Forward || d.Address != addressB {
			t.Fatalf("%+v", d)
		}
		if d := decide(w.store, "nobody.example/v1", "things"); d.Action != proxy.NotFound {
			t.Fatalf("%+v", d)
		}
	})
}

// The reference waits until every peer was asked. If a peer does not answer, the reference does not
// know what it serves. Upstream does not wait.
func TestSourcesSyncedWithAPeerThatHangs(t *testing.T) {
	hanging := func(w *whole) { w.a.failing["/api"], w.a.failing["/apis"], w.a.failing["/version"] = hang, hang, hang }
	withSources(t, proxy.Reference(), nil, hanging, func(t *testing.T, w *whole) {
		time.Sleep(2 * time.Second)
		if w.sources.HasSynced() {
			t.Fatal("synced before a was given up")
		}
		if d := decide(w.store, "apps/v1", "deployments"); d.Action != proxy.Unavailable {
			t.Fatalf("before: %+v", d)
		}
		time.Sleep(4 * time.Second)
		if !w.sources.HasSynced() {
			t.Fatal("not synced after a was given up")
		}
		if d := decide(w.store, "apps/v1", "deployments"); d.Action != proxy.Unavailable || d.Reason != proxy.ReasonUnknown {
			t.Fatalf("after: %+v", d)
		}
	})
	upstream := proxy.Upstream137()
	upstream.Fetching.Timeout = time.Hour
	withSources(t, upstream, nil, hanging, func(t *testing.T, w *whole) {
		time.Sleep(2 * time.Second)
		if !w.sources.HasSynced() {
			t.Fatal("the preset waits for its peers")
		}
		if d := decide(w.store, "apps/v1", "deployments"); d.Action != proxy.NotFound {
			t.Fatalf("want upstream's false 404, got %+v", d)
		}
	})
}

// The lease and the key of a peer show the steps of its life: published, restarted, expired, back,
// gone.
func TestSourcesFollowLeases(t *testing.T) {
	withSources(t, proxy.Reference(), nil, nil, func(t *testing.T, w *whole) {
		time.Sleep(time.Second)
		publisher := Publisher{Etcd: w.etcd, Server: "b", Address: addressB, Ready: func() bool { return true }}
		w.b.set(func() { w.b.apis = document("batch/v1 cronjobs") })
		if _, err := w.client.CoordinationV1().Leases(Namespace).Update(t.Context(), identityLease("b", "i2", time.Now()), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		stop := start(t, publisher.Run)
		defer stop()
		time.Sleep(time.Second)
		if p := w.peer("b"); p.Incarnation != "i2" || w.knows("batch/v1", "jobs") || !w.knows("batch/v1", "cronjobs") {
			t.Fatalf("restarted: %+v", p)
		}
		time.Sleep(time.Minute)
		if p := w.peer("b"); p.Address != addressB {
			t.Fatalf("renewed: %+v", p)
		}
		if p := w.peer("a"); p.Address != "" || !p.Live { // no process renews the lease
			t.Fatalf("a has expired: %+v", p)
		}
		if d := decide(w.store, "apps/v1", "deployments"); d.Action != proxy.Unavailable || d.Reason != proxy.ReasonUnresolved {
			t.Fatalf("a has expired: %+v", d)
		}

		stop()
		synctest.Wait()
		if d := decide(w.store, "batch/v1", "cronjobs"); d.Address != addressB {
			t.Fatalf("b has withdrawn its key, and serves on: %+v", d)
		}
		if err := w.client.CoordinationV1().Leases(Namespace).Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.network.set(addressB, errors.New("cut off"))
		time.Sleep(30 * time.Second)
		if d := decide(w.store, "batch/v1", "cronjobs"); d.Action == proxy.NotFound {
			t.Fatalf("b is cut off, and may serve on: %+v", d)
		}
		w.network.set(addressB, fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		time.Sleep(3 * time.Second)
		if w.knows("batch/v1", "cronjobs") {
			t.Fatal("b has stopped gracefully, and still counts as serving")
		}
		if d := decide(w.store, "batch/v1", "cronjobs"); d.Action != proxy.NotFound {
			t.Fatalf("b is gone: %+v", d)
		}
	})
}

// leasesAway makes requests for leases fail while etcd is away.
func leasesAway(w *whole) {
	w.client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return w.etcd.away.Load(), nil, errors.New("etcd is away")
	})
}

// A server whose lease watch has stalled does not conclude that its peers are gone.
func TestSourcesCutOff(t *testing.T) {
	withSources(t, proxy.Reference(), []runtime.Object{}, leasesAway, func(t *testing.T, w *whole) {
		if _, err := w.client.CoordinationV1().Leases(Namespace).Create(t.Context(), identityLease("a", "h1", time.Now()), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.renew("a", addressA)
		time.Sleep(time.Second)
		w.etcd.away.Store(true)
		time.Sleep(20 * time.Minute)
		if p := w.peer("a"); !p.Live {
			t.Fatalf("%+v", p)
		}
		if d := decide(w.store, "apps/v1", "deployments"); d.Action != proxy.Forward {
			t.Fatalf("a false 404, or no address: %+v", d)
		}
		w.etcd.away.Store(false)
	})
}

// If no lease changes for a long time, there may be a new server. The sources report this until a
// lease changes.
func TestSourcesLeaseWatchStalls(t *testing.T) {
	withSources(t, proxy.Reference(), nil, leasesAway, func(t *testing.T, w *whole) {
		for _, step := range []struct {
			away   bool
			passes time.Duration
			want   proxy.Reason
		}{
			{false, time.Minute, proxy.ReasonNobody}, // its own lease is seen to change
			{true, 10 * time.Second, proxy.ReasonNobody},
			{true, 20 * time.Second, proxy.ReasonWatchStalled},
			{false, 10 * time.Second, proxy.ReasonNobody},
		} {
			w.etcd.away.Store(step.away)
			time.Sleep(step.passes)
			synctest.Wait()
			if d := decide(w.store, "new.example/v1", "gadgets"); d.Reason != step.want {
				t.Errorf("away %t for %s: %+v, want %s", step.away, step.passes, d, step.want)
			}
		}
	})
}

// No event reports what appeared and disappeared while the watch had stalled. So every peer is
// asked when the watch works again, and repeatedly for a while after that.
func TestSourcesFetchAfterGap(t *testing.T) {
	policy := proxy.Reference()
	policy.Fetching.Interval = 30 * time.Second
	withSources(t, policy, nil, leasesAway, func(t *testing.T, w *whole) {
		a := Publisher{Etcd: w.etcd, Server: "a", Address: addressA, Ready: func() bool { return true }}
		defer start(t, a.Run)()
		for _, c := range []struct {
			silence     time.Duration
			least, most int // how often a peer is asked in the 14 s afterwards; usually it is asked every 30 s
		}{{time.Second, 0, 3}, {16 * time.Second, 6, 30}} {
			time.Sleep(time.Minute)
			w.etcd.away.Store(true)
			time.Sleep(c.silence)
			w.etcd.away.Store(false)
			w.a.take()
			time.Sleep(14 * time.Second)
			synctest.Wait()
			if n := len(w.a.take()); n < c.least || n > c.most {
				t.Errorf("after a silence of %s a peer was asked %d times, want %d to %d", c.silence, n, c.least, c.most)
			}
		}
	})
}

// The alpha learns from StorageVersion objects, and fetches nothing.
func TestSourcesAlpha(t *testing.T) {
	now := time.Now()
	objects := []runtime.Object{
		identityLease("a", "h1", now),
		storageVersion("batch.jobs", map[string][]string{"a": {"batch/v1"}}),
		storageVersion("core.pods", map[string][]string{"a": {"v1"}, "self": {"v1"}}),
		storageVersion("nodots", map[string][]string{"a": {"v1"}}),
	}
	withSources(t, proxy.Alpha128(), objects, nil, func(t *testing.T, w *whole) {
		w.renew("a", addressA)
		time.Sleep(time.Second)
		synctest.Wait()
		if d := decide(w.store, "batch/v1", "jobs"); d.Action != proxy.Forward || d.Address != addressA {
			t.Fatalf("%+v", d)
		}
		if d := decide(w.store, "v1", "pods"); d.Action != proxy.ServeLocally {
			t.Fatalf("%+v", d)
		}
		if len(w.a.requests) > 0 {
			t.Fatalf("%d requests to a peer", len(w.a.requests))
		}
		versions := w.client.InternalV1alpha1().StorageVersions()
		if _, err := versions.Update(t.Context(), storageVersion("batch.jobs", map[string][]string{"self": {"batch/v1"}}), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d := decide(w.store, "batch/v1", "jobs"); d.Action != proxy.ServeLocally {
			t.Fatalf("changed: %+v", d)
		}
		if err := versions.Delete(t.Context(), "core.pods", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d := decide(w.store, "v1", "pods"); d.Reason == proxy.ReasonLocal {
			t.Fatalf("deleted: %+v", d)
		}
	})
}

// If leases cannot be listed, this is counted and retried. The sources do not become synced
// meanwhile.
func TestSourcesLeasesFail(t *testing.T) {
	var denied atomic.Bool
	denied.Store(true)
	prepare := func(w *whole) {
		w.client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return denied.Load(), nil, errors.New("denied")
		})
	}
	withSources(t, proxy.Reference(), nil, prepare, func(t *testing.T, w *whole) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := testutil.ToFloat64(w.metrics.errors.WithLabelValues(failedLeaseList)); n < 2 || w.sources.HasSynced() {
			t.Fatalf("%v failures counted, synced %v", n, w.sources.HasSynced())
		}
		denied.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !w.sources.HasSynced() {
			t.Fatal("not synced though leases can be listed")
		}
	})
}

func TestNewValidates(t *testing.T) {
	store := proxy.NewStore(proxy.Reference(), "self")
	for says, config := range map[string]Config{
		"Config.Store":         {PeerTransport: roundTrip(nil)},
		"Config.PeerTransport": {Store: store},
		"Config.Etcd":          {Store: store, PeerTransport: roundTrip(nil), Client: fake.NewClientset()},
	} {
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
	if _, err := New(Config{Store: proxy.NewStore(proxy.Alpha128(), "self")}); err != nil {
		t.Errorf("the alpha generation needs no transport: %v", err)
	}
}

// A fetch that ends because the sources end says nothing about the peers.
func TestSourcesStopDuringFetch(t *testing.T) {
	for _, policy := range []proxy.Policy{proxy.Reference(), proxy.Upstream137()} {
		var store *proxy.Store
		withSources(t, policy, nil, func(w *whole) {
			w.a.failing["/apis"], w.b.failing["/apis"] = hang, hang
			store = w.store
		}, func(*testing.T, *whole) {
			time.Sleep(time.Second) // both peers, or the first of them, are being asked
		})
		peers := store.Table().Peers()
		if len(peers) != 2 {
			t.Fatalf("%s: %+v", policy.Name, peers)
		}
		for _, p := range peers {
			if p.Failed[0]+p.Failed[1] != "" || !p.Learned[0].IsZero() {
				t.Errorf("%s: learnt from a fetch that was given up: %+v", policy.Name, p)
			}
		}
	}
}

// The reference does not take an old, abandoned lease for a server. Upstream does.
func TestSourcesLeftover(t *testing.T) {
	for _, policy := range []proxy.Policy{proxy.Reference(), proxy.Upstream137()} {
		withSources(t, policy, []runtime.Object{identityLease("a", "h1", time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC))}, nil, func(t *testing.T, w *whole) {
			time.Sleep(time.Second) // synctest's clock begins in the year 2000
			live := 0
			for _, p := range w.store.Table().Peers() {
				if p.Live {
					live++
				}
			}
			want := 1
			if policy.Knowledge.WaitForPeers {
				want = 0
			}
			if live != want {
				t.Errorf("%s: %d live peers, want %d", policy.Name, live, want)
			}
		})
	}
}

// HasSynced reports whether everything that existed at the start is known; see [Sources.Run].
func (s *Sources) HasSynced() bool { return s.config.Store.Table().Synced() }
