package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// leaseWatch feeds a roster with the identity leases and the keys of servers, and reports changes.
type leaseWatch struct {
	log  *slog.Logger
	tell func([]proxy.Event) // called with mu held, so that events keep their order

	mu         sync.Mutex
	roster     *Roster
	synced     bool             // everything that existed at the start is known
	duplicates []proxy.ServerID // as last logged
	without    withoutKey
}

// run watches identity leases and keys until the context ends. It calls synced when the roster has
// everything that existed at the start.
func (w *leaseWatch) run(ctx context.Context, client kubernetes.Interface, etcd Etcd, failed func(error), synced func()) error {
	leases := coordinationinformers.NewFilteredLeaseInformer(client, Namespace, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = IdentityLabel + "=" + IdentityValue })
	all := []watched{
		{leases, handler(w.identity, func(name cache.ObjectName) {
			if name.Namespace == Namespace {
				w.identityGone(name.Name)
			}
		})},
	}
	if etcd != nil {
		all = append(all, watched{keyInformer(etcd.Servers()), handler(w.key, w.keyGone)},
			watched{keyInformer(etcd.Marks()), handler(w.mark, w.markGone)})
	}
	return watch(ctx, all, failed, func() {
		w.change(func(time.Time) { w.synced = true })
		synced()
		<-ctx.Done()
	})
}

// keyInformer watches keys in etcd.
func keyInformer(keys cache.ListerWatcher) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(keys, &corev1.Endpoints{}, 0, cache.Indexers{})
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

// handler calls seen for a new or changed object, and gone with the name of a deleted one.
func handler[T comparable](seen func(T), gone func(cache.ObjectName)) cache.ResourceEventHandlerFuncs {
	var none T
	see := func(o any) {
		if object, ok := o.(T); ok && object != none {
			seen(object)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, o any) { see(o) },
		DeleteFunc: func(o any) {
			if object, ok := o.(T); ok && object == none {
				return
			}
			// If the watch missed the deletion, the event has a key, and its object may be old or nil.
			if name, err := cache.DeletionHandlingObjectToName(o); err == nil {
				gone(name)
			}
		},
	}
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

func (w *leaseWatch) key(o *corev1.Endpoints) {
	if o.Name == "" {
		return
	}
	key, err := readKey(o)
	if err != nil {
		w.log.Error("the key of a server is not valid", "err", err)
	}
	w.change(func(now time.Time) { w.roster.Key(key, now) })
}

func (w *leaseWatch) keyGone(name cache.ObjectName) {
	w.change(func(now time.Time) { w.roster.KeyGone(proxy.ServerID(name.Name), now) })
}

func (w *leaseWatch) mark(o *corev1.Endpoints) {
	w.change(func(time.Time) { w.roster.Marked(proxy.ServerID(o.Name), true) })
}

func (w *leaseWatch) markGone(name cache.ObjectName) {
	w.change(func(time.Time) { w.roster.Marked(proxy.ServerID(name.Name), false) })
}

func (w *leaseWatch) change(do func(now time.Time)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(time.Now())
	w.pass()
}

// found tells the roster what a peer reports about itself; see [Roster.Fetched].
func (w *leaseWatch) found(id proxy.ServerID, version string, refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roster.Fetched(id, version, refused, time.Now()) {
		w.pass()
	}
}

// pass reports what has changed. Before everything that existed at the start is known, it reports
// nothing: a key without its identity lease would look like a process without an incarnation.
func (w *leaseWatch) pass() {
	if !w.synced {
		return
	}
	if events := w.roster.Changes(); len(events) > 0 {
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
