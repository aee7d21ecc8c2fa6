// Package lease reads the endpoint leases of servers from etcd. They have the addresses for peers.
package lease

//lint:file-ignore SA1019 Endpoints are what kube-apiserver keeps in etcd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/internal/cluster/etcd"
)

// prefix is that of endpoint leases in etcd (CreatePeerEndpointLeaseReconciler in
// k8s.io/kubernetes, pkg/controlplane/apiserver/peer.go). The reference writes the same keys.
const prefix = "/registry/peerserverleases/"

// IsKey reports whether a key in etcd is that of an endpoint lease.
func IsKey(key string) bool { return strings.HasPrefix(key, prefix) }

// Advertised returns the host:port in the endpoint lease of a server, by its apiserver identity. It
// is empty if there is no such lease.
func Advertised(ctx context.Context, from etcd.Gateway, id string) (string, error) {
	found, err := from.Get(ctx, prefix+id)
	if err == nil && found == nil {
		return "", nil
	}
	var at string
	if err == nil {
		at, err = address(found)
	}
	if err != nil {
		return "", fmt.Errorf("read the endpoint lease %s: %w", prefix+id, err)
	}
	return at, nil
}

// address returns the host:port in an endpoint lease as stored in etcd, which removes expired ones.
func address(encoded []byte) (string, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(encoded, nil, nil)
	if err != nil {
		return "", err
	}
	if lease, ok := object.(*corev1.Endpoints); ok {
		for _, s := range lease.Subsets {
			if len(s.Addresses) > 0 && len(s.Ports) > 0 {
				return net.JoinHostPort(s.Addresses[0].IP, strconv.Itoa(int(s.Ports[0].Port))), nil
			}
		}
	}
	return "", nil
}
