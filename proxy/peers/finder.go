package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"crypto/x509"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

const (
	findEvery       = time.Second     // while some server without a key is not found
	confirmEvery    = 5 * time.Second // when all are found: an address may get another server
	identifyTimeout = 3 * time.Second
)

// finder finds the addresses of kube-apiservers that write no key. With
// --endpoint-reconciler-type=lease, which is the default, every kube-apiserver writes its IP
// address into etcd for the Service kubernetes, but not which server it is. All are on one port,
// because kube-apiserver gives this Service only one. The serving certificate shows the server if
// it is valid for the host name of exactly one server, and no other server's certificate is valid
// for that name. A server's host name is a label of its identity lease. (The certificates of
// kubeadm have the node's name.)
type finder struct {
	leases   *leaseWatch
	identify func(ctx context.Context, address string) (*x509.Certificate, error)
	port     int
	log      *slog.Logger

	mu     sync.Mutex
	listed map[string]string // addresses, by the name of the key

	found     map[proxy.ServerID]string
	looked    time.Time
	ambiguous []string // addresses, as they were last logged
}

// run finds servers until the context ends. If the keys cannot be read, this is not an error.
func (f *finder) run(ctx context.Context, masters cache.ListerWatcher, failed func(error)) error {
	return watch(ctx, []watched{{keyInformer(masters), handler(f.list, f.unlist)}}, failed, func() {
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

// list stores the address in a key.
func (f *finder) list(o *corev1.Endpoints) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listed, o.Name)
	ip, _ := AddressIn(o)
	address, err := ParseAddress(net.JoinHostPort(ip, strconv.Itoa(f.port)))
	if err != nil {
		return
	}
	if f.listed == nil {
		f.listed = map[string]string{}
	}
	f.listed[o.Name] = address
}

func (f *finder) unlist(name cache.ObjectName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listed, name.Name)
}

// look searches for the servers without a key if a search is due.
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
	addresses := slices.Concat(slices.Sorted(maps.Values(f.listed)), slices.Sorted(maps.Values(f.found)))
	f.mu.Unlock()
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	certificates := make([]*x509.Certificate, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
			defer cancel()
			if certificate, err := f.identify(ctx, address); err == nil {
				certificates[i] = certificate
			}
		})
	}
	asked.Wait()
	found := map[proxy.ServerID]string{}
	var ambiguous []string
	for i, ids := range whose(certificates, hosts) {
		switch {
		case certificates[i] == nil:
			for id, known := range f.found { // in any order: an address has one server
				if known == addresses[i] && found[id] == "" && slices.Contains(wanted, id) {
					found[id] = known
				}
			}
		case len(ids) > 1:
			ambiguous = append(ambiguous, addresses[i])
		case len(ids) == 1 && slices.Contains(wanted, ids[0]):
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

// whose returns, for each certificate, the servers for whose host names only this one is valid. A
// name in several certificates, such as localhost, and an IP address are no server's host name. So
// nobody who makes up an identity lease for such a name makes a certificate ambiguous.
func whose(certificates []*x509.Certificate, hosts map[proxy.ServerID]string) [][]proxy.ServerID {
	all := make([][]proxy.ServerID, len(certificates))
	for id, host := range hosts { // in any order
		if _, err := netip.ParseAddr(host); err == nil {
			continue
		}
		var valid []int
		for i, c := range certificates {
			if c != nil && c.VerifyHostname(host) == nil {
				valid = append(valid, i)
			}
		}
		if len(valid) == 1 {
			all[valid[0]] = append(all[valid[0]], id)
		}
	}
	return all
}

// lacking returns the host names of the servers whose lease or key is renewed, including this one.
// wanted are the servers among them that write no key, sorted.
func (w *leaseWatch) lacking() (hosts map[proxy.ServerID]string, wanted []proxy.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	direct, unknown := w.roster.WithoutKey()
	hosts = w.roster.hosts()
	for _, id := range slices.Concat(direct, unknown) {
		if hosts[id] != "" {
			wanted = append(wanted, id)
		}
	}
	slices.Sort(wanted)
	return hosts, wanted
}
