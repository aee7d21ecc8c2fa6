package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
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

// leaseWatch feeds a roster from the leases in a cluster and reports what changes.
type leaseWatch struct {
	log  *slog.Logger
	tell func([]proxy.Event) // called with mu held, so that events keep their order

	mu         sync.Mutex
	roster     *Roster
	duplicates []proxy.ServerID // that were logged last
}

// run watches both kinds of leases until the context ends. synced is called once all that existed at the start is in the roster.
func (w *leaseWatch) run(ctx context.Context, client kubernetes.Interface, failed func(error), synced func()) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var all []cache.InformerSynced
	for _, kind := range []struct {
		selector string
		handler  cache.ResourceEventHandlerFuncs
	}{
		{IdentityLabel + "=" + IdentityValue, handler(w.identity, w.identityGone)},
		{ComponentLabel + "=" + ComponentValue, handler(w.endpoint, w.endpointGone)},
	} {
		informer := coordinationinformers.NewFilteredLeaseInformer(client, Namespace, 0, cache.Indexers{},
			func(o *metav1.ListOptions) { o.LabelSelector = kind.selector })
		registered, err := start(ctx, &wg, informer, kind.handler, failed)
		if err != nil {
			return fmt.Errorf("watch leases (%s): %w", kind.selector, err)
		}
		all = append(all, registered)
	}
	if cache.WaitForCacheSync(ctx.Done(), all...) {
		synced()
	}
	<-ctx.Done()
	return nil
}

// start runs an informer until the context ends. What it returns is true once the handler has seen all that existed at the start.
func start(ctx context.Context, wg *sync.WaitGroup, informer cache.SharedIndexInformer, handler cache.ResourceEventHandlerFuncs, failed func(error)) (cache.InformerSynced, error) {
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil && !ordinary(err) {
			failed(err)
		}
	}); err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	wg.Go(func() { informer.RunWithContext(ctx) })
	return registration.HasSynced, nil
}

// ordinary reports whether a watch ended as every watch does: after some time, or because it fell too far behind.
func ordinary(err error) bool {
	return errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// handler calls seen for a lease that was added or has changed, and gone with the name of one that was deleted.
func handler(seen func(*coordinationv1.Lease), gone func(name string)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { whenLease(o, seen) },
		UpdateFunc: func(_, o any) { whenLease(o, seen) },
		DeleteFunc: func(o any) {
			if namespace, name, ok := deletedName(o); ok && namespace == Namespace {
				gone(name)
			}
		},
	}
}

func whenLease(o any, do func(*coordinationv1.Lease)) {
	if l, ok := o.(*coordinationv1.Lease); ok && l != nil {
		do(l)
	}
}

// deletedName is the name of what was deleted. A deletion that the watch has missed comes as a key, with an object that may be old or none.
func deletedName(o any) (namespace, name string, ok bool) {
	if l, isLease := o.(*coordinationv1.Lease); isLease && l == nil {
		return "", "", false
	}
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(key, "/")
	return namespace, name, ok
}

func (w *leaseWatch) identity(l *coordinationv1.Lease) {
	if !isIdentityLease(l) { // it was one when the watch began, and was labelled anew
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

// found tells the roster the digest of what was fetched from a peer.
func (w *leaseWatch) found(id proxy.ServerID, digest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roster.Fetched(id, digest)
}

// begin reports what the roster knows without any lease.
func (w *leaseWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass()
}

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

// warnOfDuplicates logs once that several servers have the same identity.
func (w *leaseWatch) warnOfDuplicates() {
	now := w.roster.Duplicates()
	if len(now) > 0 && !slices.Equal(now, w.duplicates) {
		w.log.Error("two servers have the same identity, which is a hash of the host name: give each host a name of its own", "duplicates", now)
	}
	w.duplicates = now
}
