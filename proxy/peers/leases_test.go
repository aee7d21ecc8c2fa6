package peers

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
	return &leaseWatch{log: slog.New(slog.DiscardHandler), tell: tell, roster: NewRoster(RosterConfig{Self: "self", StaleAfter: time.Minute})}
}

// Real informers on a fake cluster report leases that exist, appear, change and are deleted.
func TestLeaseWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		elsewhere := identityLease("elsewhere", "h", now)
		elsewhere.Namespace = "default"
		other := identityLease("other", "h", now)
		other.Labels[IdentityLabel] = "aggregated-apiserver"
		client := fake.NewClientset([]runtime.Object{
			identityLease("a", "h1", now), identityLease("self", "me", now), identityLease("leftover", "h", now.Add(-30*time.Minute)),
			endpointLease("b", "i1", "192.0.2.2:6443", now), endpointLease("evil", "i1", "https://evil.example/", now), elsewhere, other,
		}...)
		leases := client.CoordinationV1().Leases(Namespace)
		var told told
		w := newLeaseWatch(told.tell)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		synced, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- w.run(ctx, client, func(error) {}, func() { close(synced) }) }()
		<-synced

		expect := func(step string, want ...proxy.Event) {
			t.Helper()
			got := told.take()
			slices.SortStableFunc(got, compareEvents)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (want -, got +):\n%s", step, diff)
			}
		}
		expect("at the start",
			proxy.PeerAppeared{ID: "a", Incarnation: "h1"},
			proxy.PeerAppeared{ID: "b", Incarnation: "i1"}, proxy.PeerAddress{ID: "b", Address: "192.0.2.2:6443"},
			proxy.PeerAppeared{ID: "evil", Incarnation: "i1"})

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

		relabelled := identityLease("a", "h2", now)
		relabelled.Labels = nil
		update(relabelled)
		expect("no longer an identity lease", proxy.PeerGone{ID: "a"})

		if err := leases.Delete(t.Context(), "skewproof-proxy-b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("endpoint lease deleted", proxy.PeerAddress{ID: "b"}, proxy.PeerGone{ID: "b"})

		update(identityLease("leftover", "h", time.Now()))
		expect("no leftover after all", proxy.PeerAppeared{ID: "leftover", Incarnation: "h"})

		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
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
	identities, endpoints := handler(w.identity, w.identityGone), handler(w.endpoint, w.endpointGone)
	var none *coordinationv1.Lease
	odd := []any{
		nil, none, "text", 7, &metav1.Status{}, cache.DeletedFinalStateUnknown{}, cache.DeletedFinalStateUnknown{Key: "a/b/c", Obj: none},
		cache.DeletedFinalStateUnknown{Key: "", Obj: "text"}, cache.DeletedFinalStateUnknown{Key: "default/a"}, &coordinationv1.Lease{},
	}
	for _, h := range []cache.ResourceEventHandlerFuncs{identities, endpoints} {
		for _, o := range odd {
			h.OnAdd(o, true)
			h.OnUpdate(o, o)
			h.OnDelete(o)
		}
	}
	if len(told.events) > 0 {
		t.Fatalf("unexpected objects counted as peers: %v", told.events)
	}

	// The watch has missed a deletion.
	now := time.Now()
	identities.OnAdd(identityLease("a", "h", now), true)
	endpoints.OnAdd(endpointLease("b", "i", "192.0.2.2:6443", now), true)
	told.events = nil
	identities.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/a"}) // another lease with the same name
	if len(told.events) > 0 {
		t.Fatalf("the deletion of another lease counted as that of a's: %v", told.events)
	}
	identities.OnDelete(cache.DeletedFinalStateUnknown{Key: Namespace + "/a", Obj: identityLease("a", "h", now)})
	endpoints.OnDelete(cache.DeletedFinalStateUnknown{Key: Namespace + "/skewproof-proxy-b"})
	want := []proxy.Event{proxy.PeerGone{ID: "a"}, proxy.PeerAddress{ID: "b"}, proxy.PeerGone{ID: "b"}}
	if diff := cmp.Diff(want, told.events); diff != "" {
		t.Fatal(diff)
	}
}
