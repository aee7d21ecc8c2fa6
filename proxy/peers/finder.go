package peers

import (
	"context"
	"crypto/x509"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

const (
	findEvery       = time.Second     // while some server without a proxy is not found
	confirmEvery    = 5 * time.Second // when all are found: an address may get another server
	identifyTimeout = 3 * time.Second

	// serviceName is the name of the Service of all kube-apiservers, and of its EndpointSlice. Any
	// user who may write in the namespace can add other slices to the Service.
	serviceName = "kubernetes"
)

// finder finds the addresses of kube-apiservers that have no proxy. Their addresses are in the
// EndpointSlice of the Service kubernetes, but the slice does not say which server is at an
// address. The serving certificate shows the server if it is valid for the host name of exactly one
// live server. A server's host name is a label of its identity lease. (The certificates of kubeadm
// have the node's name.)
type finder struct {
	leases   *leaseWatch
	identify func(ctx context.Context, address string) (*x509.Certificate, error)
	log      *slog.Logger

	mu     sync.Mutex
	listed []string // addresses

	found     map[proxy.ServerID]string
	looked    time.Time
	ambiguous []string // addresses, as they were last logged
}

// run finds servers until the context ends. If the slice cannot be read, this is not an error.
func (f *finder) run(ctx context.Context, client kubernetes.Interface, failed func(error)) error {
	informer := discoveryinformers.NewFilteredEndpointSliceInformer(client, metav1.NamespaceDefault, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = discoveryv1.LabelServiceName + "=" + serviceName })
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.list(o, false) },
		UpdateFunc: func(_, o any) { f.list(o, false) },
		DeleteFunc: func(o any) { f.list(o, true) },
	}
	return watch(ctx, []watched{{informer, handler}}, failed, func() {
		tick := time.NewTicker(findEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			f.look(ctx, time.Now())
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
}

// list stores the addresses of a slice.
func (f *finder) list(o any, deleted bool) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	slice, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || slice == nil || slice.Namespace != metav1.NamespaceDefault || slice.Name != serviceName {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listed = nil; !deleted {
		f.listed = addressesIn(slice)
	}
}

// addressesIn returns the addresses of a slice, sorted. All addresses of a slice have the same
// ports.
func addressesIn(slice *discoveryv1.EndpointSlice) []string {
	var all []string
	for _, p := range slice.Ports {
		if p.Port == nil || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			continue
		}
		for _, e := range slice.Endpoints {
			for _, ip := range e.Addresses {
				if address, err := ParseAddress(net.JoinHostPort(ip, strconv.Itoa(int(*p.Port)))); err == nil {
					all = append(all, address)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// look searches for the servers without a proxy if a search is due.
func (f *finder) look(ctx context.Context, now time.Time) {
	hosts, wanted := f.leases.lacking()
	missing := slices.ContainsFunc(wanted, func(id proxy.ServerID) bool { return f.found[id] == "" })
	if !missing && len(wanted) == len(f.found) && (len(wanted) == 0 || now.Sub(f.looked) < confirmEvery) {
		return
	}
	f.looked = now
	next := map[proxy.ServerID]string{}
	if len(wanted) > 0 {
		next = f.identified(ctx, hosts, wanted)
	}
	if ctx.Err() != nil || maps.Equal(next, f.found) {
		return
	}
	f.found = next
	f.leases.change(func(time.Time) { f.leases.roster.SetDirect(next) })
}

// identified returns the addresses of the wanted servers. If an address gives no answer, its server
// keeps its known address.
func (f *finder) identified(ctx context.Context, hosts map[proxy.ServerID]string, wanted []proxy.ServerID) map[proxy.ServerID]string {
	f.mu.Lock()
	addresses := slices.Concat(f.listed, slices.Sorted(maps.Values(f.found)))
	f.mu.Unlock()
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	whose := make([][]proxy.ServerID, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() { whose[i] = f.whose(ctx, address, hosts) })
	}
	asked.Wait()
	found := map[proxy.ServerID]string{}
	var ambiguous []string
	for i, ids := range whose {
		if len(ids) > 1 {
			ambiguous = append(ambiguous, addresses[i])
			continue
		}
		if len(ids) == 1 && found[ids[0]] == "" && slices.Contains(wanted, ids[0]) {
			found[ids[0]] = addresses[i]
		}
	}
	if len(ambiguous) > 0 && !slices.Equal(ambiguous, f.ambiguous) {
		f.log.Warn("it is not known which server is at an address, because the certificate there is valid for several: "+
			"give each server a certificate for its own host name", "addresses", ambiguous)
	}
	f.ambiguous = ambiguous
	return found
}

// whose returns the servers for whose host names the certificate at an address is valid.
func (f *finder) whose(ctx context.Context, address string, hosts map[proxy.ServerID]string) []proxy.ServerID {
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	certificate, err := f.identify(ctx, address)
	var ids []proxy.ServerID
	if err != nil {
		for id, known := range f.found { // in any order: an address has one server
			if known == address {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for id, host := range hosts { // in any order
		if certificate.VerifyHostname(host) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// lacking returns the host names of the live servers, including this one. wanted are the servers
// among them that have no proxy, and no address in their identity leases, sorted.
func (w *leaseWatch) lacking() (hosts map[proxy.ServerID]string, wanted []proxy.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	direct, unknown := w.roster.WithoutProxy()
	hosts = w.roster.hosts()
	for _, id := range slices.Concat(direct, unknown) {
		if hosts[id] != "" && !w.roster.advertises(id) {
			wanted = append(wanted, id)
		}
	}
	slices.Sort(wanted)
	return hosts, wanted
}
