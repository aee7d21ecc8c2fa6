package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// leaseWatch feeds a roster with the leases of a cluster, and reports changes.
type leaseWatch struct {
	log  *slog.Logger
	tell func([]proxy.Event) // called with mu held, so that events keep their order

	mu         sync.Mutex
	roster     *Roster
	duplicates []proxy.ServerID // as last logged
	without    withoutProxy
}

// run watches both kinds of leases until the context ends. It calls synced when the roster has
// every lease that existed at the start.
func (w *leaseWatch) run(ctx context.Context, client kubernetes.Interface, failed func(error), synced func()) error {
	informer := func(label, value string, handler cache.ResourceEventHandlerFuncs) watched {
		return watched{handler: handler, informer: coordinationinformers.NewFilteredLeaseInformer(client, Namespace, 0, cache.Indexers{},
			func(o *metav1.ListOptions) { o.LabelSelector = label + "=" + value })}
	}
	return watch(ctx, []watched{
		informer(IdentityLabel, IdentityValue, handler(w.identity, w.identityGone)),
		informer(ComponentLabel, ComponentValue, handler(w.endpoint, w.endpointGone)),
	}, failed, func() {
		synced()
		<-ctx.Done()
	})
}

// watched is an informer, and the handler of its events.
type watched struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandler
}

// watch runs informers until the context ends or the function then returns. It calls then when the
// handlers have seen every object that existed at the start.
func watch(ctx context.Context, all []watched, failed func(error), then func()) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var synced []cache.InformerSynced
	for _, w := range all {
		if err := w.informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			if ctx.Err() == nil && !ordinary(err) {
				failed(err)
			}
		}); err != nil {
			return fmt.Errorf("watch the API server: %w", err)
		}
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watch the API server: %w", err)
		}
		wg.Go(func() { w.informer.Run(ctx.Done()) })
		synced = append(synced, registration.HasSynced)
	}
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		then()
	}
	return nil
}

// ordinary reports whether a watch timed out or fell too far behind. This happens to every watch.
func ordinary(err error) bool {
	return errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// handler calls seen for a new or changed lease, and gone with the name of a deleted one.
func handler(seen func(*coordinationv1.Lease), gone func(name string)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { whenLease(o, seen) },
		UpdateFunc: func(_, o any) { whenLease(o, seen) },
		DeleteFunc: func(o any) {
			if name, ok := deletedName(o); ok && name.Namespace == Namespace {
				gone(name.Name)
			}
		},
	}
}

func whenLease(o any, do func(*coordinationv1.Lease)) {
	if l, ok := o.(*coordinationv1.Lease); ok && l != nil {
		do(l)
	}
}

// deletedName returns the name of a deleted object. If the watch missed the deletion, the event has
// a key, and its object may be old or nil.
func deletedName(o any) (cache.ObjectName, bool) {
	if l, ok := o.(*coordinationv1.Lease); ok && l == nil {
		return cache.ObjectName{}, false
	}
	name, err := cache.DeletionHandlingObjectToName(o)
	return name, err == nil
}

func (w *leaseWatch) identity(l *coordinationv1.Lease) {
	if !isIdentityLease(l) { // its labels have changed
		if l.Namespace == Namespace {
			w.identityGone(l.Name)
		}
		return
	}
	lease, err := readIdentityLease(l)
	if err != nil {
		w.log.Warn("lease ignored", "lease", l.Name, "err", err)
		return
	}
	w.change(func(now time.Time) { w.roster.Identity(lease, now) })
}

func (w *leaseWatch) identityGone(name string) {
	w.change(func(now time.Time) { w.roster.IdentityGone(proxy.ServerID(name), now) })
}

func (w *leaseWatch) endpoint(l *coordinationv1.Lease) {
	if !isEndpointLease(l) {
		if l.Namespace == Namespace {
			w.endpointGone(l.Name)
		}
		return
	}
	lease, usable, err := readEndpointLease(l)
	if err != nil {
		w.log.Error("endpoint lease is not valid", "lease", l.Name, "err", err)
	}
	if usable {
		w.change(func(now time.Time) { w.roster.Endpoint(lease, now) })
	}
}

func (w *leaseWatch) endpointGone(name string) {
	if id, ok := endpointServer(name); ok {
		w.change(func(now time.Time) { w.roster.EndpointGone(id, now) })
	}
}

func (w *leaseWatch) change(do func(now time.Time)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(time.Now())
	w.pass()
}

// found tells the roster what a peer reports about itself; see [Roster.Fetched].
func (w *leaseWatch) found(id proxy.ServerID, digest, version string, refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roster.Fetched(id, digest, version, refused) {
		w.pass()
	}
}

// begin reports what the roster knows without a lease.
func (w *leaseWatch) begin() { w.change(func(time.Time) {}) }

func (w *leaseWatch) pass() {
	events := w.roster.Changes()
	for _, e := range events {
		if changed, ok := e.(proxy.PeerChanged); ok {
			w.log.Info("a peer's endpoint lease has another digest of what the peer serves", "peer", changed.ID)
		}
	}
	if len(events) > 0 {
		w.tell(events)
	}
	w.warnOfDuplicates()
}

// warnOfDuplicates logs a change of the servers that share an identity.
func (w *leaseWatch) warnOfDuplicates() {
	now := w.roster.Duplicates()
	if len(now) > 0 && !slices.Equal(now, w.duplicates) {
		w.log.Error("two servers have the same identity, which is a hash of the host name: give each host a name of its own", "duplicates", now)
	}
	w.duplicates = now
}
