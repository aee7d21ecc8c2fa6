package peers

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/skewproof/skewproof/proxy"
)

// Etcd has the keys about servers that a kube-apiserver writes into etcd itself. No request to the
// API can read or write them. Package proxy/apiserver implements it.
type Etcd interface {
	// Servers lists and watches the keys in which servers publish their addresses for peers. Each key
	// is an Endpoints object that has the server's identity as its name.
	Servers() cache.ListerWatcher
	// Masters lists and watches the keys of all kube-apiservers that run with
	// --endpoint-reconciler-type=lease. Each key is an Endpoints object without a port.
	Masters() cache.ListerWatcher
	// Marks lists and watches the marks of servers that have written a key. Each mark is an Endpoints
	// object without addresses that has the server's identity as its name.
	Marks() cache.ListerWatcher
	// Renew writes the key of a server, which lasts for [KeyTTL], and its mark, which lasts for at
	// least [MarkTTL], unless they are renewed.
	Renew(ctx context.Context, id proxy.ServerID, address string) error
	// Withdraw removes the key and the mark of a server, if the key still has this address.
	Withdraw(ctx context.Context, id proxy.ServerID, address string) error
}

// KeyTTL is how long a server's key lasts, as in kube-apiserver (DefaultPeerEndpointReconcilerTTL).
const KeyTTL = 15 * time.Second

// MarkTTL is how long a server's mark lasts: as long as the identity lease of a server that was
// killed (see goneAfter).
const MarkTTL = time.Hour

// Key is the content of the key in which a server publishes its address.
type Key struct {
	ID      proxy.ServerID
	Address string // "" if the key has no valid address
	Renewal int64  // another one after each renewal
}

// AddressIn returns the IP address in a key, and the port if it has one.
func AddressIn(o *corev1.Endpoints) (ip string, port int32) {
	if len(o.Subsets) == 0 || len(o.Subsets[0].Addresses) == 0 {
		return "", 0
	}
	if len(o.Subsets[0].Ports) > 0 {
		port = o.Subsets[0].Ports[0].Port
	}
	return o.Subsets[0].Addresses[0].IP, port
}

// readKey reads a server's key. A key with a wrong address is usable, without the address.
func readKey(o *corev1.Endpoints) (Key, error) {
	key := Key{ID: proxy.ServerID(o.Name), Renewal: o.Generation}
	ip, port := AddressIn(o)
	address, err := ParseAddress(net.JoinHostPort(ip, strconv.Itoa(int(port))))
	if err != nil {
		return key, fmt.Errorf("read the key of server %s: %w; its server has no known address", key.ID, err)
	}
	key.Address = address
	return key, nil
}
