// Package lease reads the endpoint leases of servers from etcd. They have the addresses for peers.
package lease

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/skewproof/skewproof/internal/cluster/etcd"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// The prefixes of endpoint leases in etcd: those of kube-apiservers
// (CreatePeerEndpointLeaseReconciler in k8s.io/kubernetes, pkg/controlplane/apiserver/peer.go), and
// those of the reference, which are Leases.
const (
	builtinLeases   = "/registry/peerserverleases/"
	referenceLeases = "/registry/leases/" + peers.Namespace + "/"
)

// IsKey reports whether a key in etcd is that of an endpoint lease, of whatever server.
func IsKey(key string) bool {
	return strings.HasPrefix(key, builtinLeases) || strings.HasPrefix(key, referenceLeases+peers.EndpointLeaseName(""))
}

// Advertised returns the host:port in the endpoint lease of a server, by its apiserver identity. It
// is empty if there is no such lease. The lease of the reference comes first: its peers use it.
func Advertised(ctx context.Context, from etcd.Gateway, id string) (string, error) {
	for _, key := range []string{referenceLeases + peers.EndpointLeaseName(proxy.ServerID(id)), builtinLeases + id} {
		found, err := from.Get(ctx, key)
		if err != nil {
			return "", fmt.Errorf("read the endpoint lease %s: %w", key, err)
		}
		if found == nil {
			continue
		}
		at, err := address(found, time.Now())
		if err != nil {
			return "", fmt.Errorf("read the endpoint lease %s: %w", key, err)
		}
		if at != "" {
			return at, nil
		}
	}
	return "", nil
}

// address returns the host:port in an endpoint lease as stored in etcd. It is empty if the lease
// has expired. etcd removes an expired lease of a kube-apiserver, and keeps that of the reference.
func address(encoded []byte, now time.Time) (string, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(encoded, nil, nil)
	if err != nil {
		return "", err
	}
	switch lease := object.(type) {
	//lint:ignore SA1019 it is what kube-apiserver keeps there
	case *corev1.Endpoints:
		for _, s := range lease.Subsets {
			if len(s.Addresses) > 0 && len(s.Ports) > 0 {
				return net.JoinHostPort(s.Addresses[0].IP, strconv.Itoa(int(s.Ports[0].Port))), nil
			}
		}
	case *coordinationv1.Lease:
		seconds, renewed := lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime
		if seconds == nil || renewed == nil || now.Sub(renewed.Time) > time.Duration(*seconds)*time.Second {
			return "", nil
		}
		return lease.Annotations[peers.AddressAnnotation], nil
	}
	return "", nil
}
