package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// told collects events.
type told struct {
	mu     sync.Mutex
	events []proxy.Event
}

func (t *told) tell(events []proxy.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, events...)
}

// take returns the events since its last call.
func (t *told) take() []proxy.Event {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	events := t.events
	t.events = nil
	return events
}

func newLeaseWatch(tell func([]proxy.Event)) *leaseWatch {
	return &leaseWatch{log: slog.New(slog.DiscardHandler), tell: tell, synced: true, roster: NewRoster(RosterConfig{Self: "self", StaleAfter: time.Minute})}
}

// Real informers report leases and keys that exist, appear, change and are deleted.
func TestLeaseWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		elsewhere := identityLease("elsewhere", "h", now)
		elsewhere.Namespace = "default"
		other := identityLease("other", "h", now)
		other.Labels[IdentityLabel] = "aggregated-apiserver"
		client := fake.NewClientset([]runtime.Object{
			identityLease("a", "h1", now), identityLease("self", "me", now), identityLease("evil", "h", now), identityLease("madeup", "h", now), identityLease("paused", "h", now), elsewhere, other,
		}...)
		leases := client.CoordinationV1().Leases(Namespace)
		etcd := newFakeEtcd(t)
		for _, id := range []string{"a", "elsewhere", "other"} {
			etcd.servers.Add(keyAt(id, "192.0.2.1:6443", 1))
		}
		etcd.servers.Add(keyAt("evil", "https://evil.example/", 1))
		etcd.servers.Add(keyAt("", "192.0.2.3:6443", 1))
		etcd.marks.Add(mark("paused"))
		var told told
		w := newLeaseWatch(told.tell)
		w.synced = false
		synced := make(chan struct{})
		defer start(t, func(ctx context.Context) error {
			return w.run(ctx, client, etcd, func(err error) { t.Error(err) }, func() { close(synced) })
		})()
		<-synced

		expect := func(step string, want ...proxy.Event) {
			t.Helper()
			got := told.take()
			slices.SortStableFunc(got, compareEvents)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (want -, got +):\n%s", step, diff)
			}
		}
		expect("at the start, each once",
			proxy.PeerAppeared{ID: "a", Incarnation: "h1"}, proxy.PeerAddress{ID: "a", Address: "192.0.2.1:6443"},
			proxy.PeerAppeared{ID: "elsewhere"}, proxy.PeerAddress{ID: "elsewhere", Address: "192.0.2.1:6443"},
			proxy.PeerAppeared{ID: "evil", Incarnation: "h"},
			proxy.PeerAppeared{ID: "other"}, proxy.PeerAddress{ID: "other", Address: "192.0.2.1:6443"},
			proxy.PeerAppeared{ID: "paused", Incarnation: "h"})
		etcd.marks.Delete(mark("paused"))
		expect("no mark any more", proxy.PeerGone{ID: "paused"})

		update := func(l *coordinationv1.Lease) {
			t.Helper()
			if _, err := leases.Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		update(identityLease("a", "h2", now))
		expect("another holder", proxy.PeerAppeared{ID: "a", Incarnation: "h2"})

		without := identityLease("a", "", now)
		without.Spec.HolderIdentity = nil
		update(without)
		expect("no holder")

		etcd.servers.Modify(keyAt("a", "192.0.2.1:6443", 2))
		expect("renewed")
		etcd.servers.Delete(keyAt("a", "192.0.2.1:6443", 2))
		expect("withdrawn", proxy.PeerAddress{ID: "a"}, proxy.PeerGone{ID: "a"})

		relabelled := identityLease("evil", "h", now)
		relabelled.Labels = nil
		update(relabelled)
		etcd.servers.Delete(keyAt("evil", "https://evil.example/", 1))
		expect("no longer an identity lease", proxy.PeerGone{ID: "evil"})

		update(identityLease("madeup", "h2", time.Now()))
		expect("a lease without a key")
	})
}

func compareEvents(a, b proxy.Event) int {
	id := func(e proxy.Event) proxy.ServerID {
		switch e := e.(type) {
		case proxy.PeerAppeared:
			return e.ID
		case proxy.PeerAddress:
			return e.ID
		case proxy.PeerGone:
			return e.ID
		}
		return ""
	}
	switch x, y := id(a), id(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// The handlers accept objects that an informer should not pass.
func TestLeaseHandlersIgnoreOtherObjects(t *testing.T) {
	var told told
	w := newLeaseWatch(told.tell)
	identities, keys := handler(w.identity, func(n cache.ObjectName) { w.identityGone(n.Name) }), handler(w.key, w.keyGone)
	var none *coordinationv1.Lease
	var noKey *corev1.Endpoints
	odd := []any{
		nil, "text", 7, &metav1.Status{}, cache.DeletedFinalStateUnknown{}, cache.DeletedFinalStateUnknown{Key: "a/b/c", Obj: none},
		cache.DeletedFinalStateUnknown{Key: "", Obj: "text"}, cache.DeletedFinalStateUnknown{Key: "default/a"}, &coordinationv1.Lease{}, &corev1.Endpoints{},
	}
	for _, h := range []cache.ResourceEventHandlerFuncs{identities, keys} {
		for _, o := range odd {
			h.OnAdd(o, true)
			h.OnUpdate(o, o)
			h.OnDelete(o)
		}
	}
	identities.OnAdd(none, true)
	identities.OnDelete(none)
	keys.OnAdd(noKey, true)
	keys.OnDelete(noKey)
	if len(told.events) > 0 {
		t.Fatalf("unexpected objects counted as peers: %v", told.events)
	}

	// The watches have missed deletions.
	now := time.Now()
	identities.OnAdd(identityLease("a", "h", now), true)
	keys.OnAdd(keyAt("a", "192.0.2.2:6443", 1), true)
	told.events = nil
	keys.OnDelete(cache.DeletedFinalStateUnknown{Key: "a"})
	identities.OnDelete(cache.DeletedFinalStateUnknown{Key: Namespace + "/a", Obj: identityLease("a", "h", now)})
	want := []proxy.Event{proxy.PeerAddress{ID: "a"}, proxy.PeerGone{ID: "a"}}
	if diff := cmp.Diff(want, told.events); diff != "" {
		t.Fatal(diff)
	}
}
