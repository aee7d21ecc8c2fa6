package peers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/skewproof/skewproof/proxy"
)

const (
	renewEvery    = 5 * time.Second // three times in leaseDuration
	checkEvery    = time.Second     // checks Ready and Incarnation; also the pause after a failure
	writeTimeout  = 4 * time.Second // of one attempt to write
	deleteTimeout = 5 * time.Second // to delete the lease at the end
)

// Publisher tells peers the address of the local server, with an endpoint lease. All fields except
// Serves and Logger are required. Publisher calls its functions every second. They must not block.
type Publisher struct {
	Client  kubernetes.Interface
	Server  proxy.ServerID
	Address string // host:port at which peers reach this server
	// Incarnation names the server's process. It must change when the server restarts, so that
	// peers forget what the old process served. A random name for each process is enough. "":
	// unknown, and no lease is written.
	Incarnation func() string
	// Ready reports whether the server would serve a peer's request. While it returns false, the
	// lease is not renewed. When the lease expires, peers forget the address.
	Ready func() bool
	// Serves is the [Digest] of what the server serves, "" while that is unknown; see [Digester].
	// When it changes, the lease is written. Nil: the lease has no digest.
	Serves func() string
	Logger *slog.Logger // nil: none

	published atomic.Pointer[string] // the incarnation for which the lease was last written
}

// Published reports whether the lease was written for the present incarnation. Until then, peers
// still use the document of the previous process, so the server should not be ready. It is safe for
// concurrent use.
func (p *Publisher) Published() bool {
	holder := p.published.Load()
	return holder != nil && *holder == p.Incarnation()
}

// Run writes and renews the lease until ctx ends, and then deletes it within 5 s. It returns an
// error if a field is wrong or the lease could not be deleted. A lease that could not be deleted
// expires.
func (p *Publisher) Run(ctx context.Context) error {
	if err := p.validate(); err != nil {
		return err
	}
	log := p.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var (
		holder    string    // of the lease as last written, "" if it never was
		attempted string    // the holder in the last attempt, which may have succeeded
		serves    string    // as last written
		written   time.Time // when holder was
		failing   bool
	)
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		incarnation := p.Incarnation()
		serving := p.serves()
		due := incarnation != holder || serving != serves || time.Since(written) >= renewEvery
		if due && incarnation != "" && p.Ready() {
			began := time.Now()
			attempted = incarnation
			switch err := p.write(ctx, incarnation, serving); {
			case err == nil:
				if holder == "" || failing {
					log.Info("endpoint lease published", "lease", EndpointLeaseName(p.Server))
				}
				holder, serves, written, failing = incarnation, serving, began, false
				p.published.Store(&incarnation)
			case ctx.Err() == nil && !failing:
				log.Warn("endpoint lease not published; trying again every second", "lease", EndpointLeaseName(p.Server), "err", err)
				failing = true
			}
		}
		select {
		case <-ctx.Done():
			if attempted == "" {
				return nil
			}
			return p.leave(context.WithoutCancel(ctx), holder, attempted)
		case <-tick.C:
		}
	}
}

func (p *Publisher) validate() error {
	if p.Client == nil || p.Incarnation == nil || p.Ready == nil {
		return fmt.Errorf("publish endpoint lease: Client, Incarnation and Ready are all needed")
	}
	if err := validID(EndpointLeaseName(p.Server)); err != nil {
		return fmt.Errorf("publish endpoint lease: %w", err)
	}
	if _, err := ParseAddress(p.Address); err != nil {
		return fmt.Errorf("publish endpoint lease: %w", err)
	}
	return nil
}

func (p *Publisher) serves() string {
	if p.Serves == nil {
		return ""
	}
	return p.Serves()
}

func (p *Publisher) leases() coordinationclient.LeaseInterface {
	return p.Client.CoordinationV1().Leases(Namespace)
}

// write creates or renews the lease. After a conflict, the next attempt reads the lease again.
func (p *Publisher) write(ctx context.Context, holder, serves string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	lease, err := p.leases().Get(ctx, EndpointLeaseName(p.Server), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: EndpointLeaseName(p.Server), Namespace: Namespace}}
		p.fill(lease, holder, serves)
		_, err = p.leases().Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	p.fill(lease, holder, serves)
	_, err = p.leases().Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (p *Publisher) fill(l *coordinationv1.Lease, holder, serves string) {
	now := metav1.NowMicro()
	seconds := int32(leaseDuration / time.Second)
	metav1.SetMetaDataLabel(&l.ObjectMeta, ComponentLabel, ComponentValue)
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, ServerAnnotation, string(p.Server))
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, AddressAnnotation, p.Address)
	if delete(l.Annotations, ServesAnnotation); serves != "" {
		l.Annotations[ServesAnnotation] = serves
	}
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != holder {
		l.Spec.AcquireTime = &now
	}
	l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &holder, &now, &seconds
}

// leave deletes the lease. It does not do so if another process, such as this one's successor,
// holds the lease.
func (p *Publisher) leave(ctx context.Context, holders ...string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	name := EndpointLeaseName(p.Server)
	failed := func(err error) error {
		return fmt.Errorf("delete endpoint lease %s: %w; it expires in %s", name, err, leaseDuration)
	}
	for {
		lease, err := p.leases().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return failed(err)
		case lease.Spec.HolderIdentity == nil || !slices.Contains(holders, *lease.Spec.HolderIdentity):
			return nil
		}
		err = p.leases().Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
		})
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err): // after a conflict, check again which process holds it
			return failed(err)
		}
	}
}
