package peers

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
)

// How leases are found.
const (
	// Namespace is the namespace of all leases of this package.
	Namespace = metav1.NamespaceSystem

	// IdentityLabel and IdentityValue label a kube-apiserver's identity lease.
	IdentityLabel = "apiserver.kubernetes.io/identity"
	IdentityValue = "kube-apiserver"

	// ComponentLabel and ComponentValue label an endpoint lease.
	ComponentLabel = "proxy.skewproof.io/component"
	ComponentValue = "peer-proxy"
	// ServerAnnotation is the identity of the server of an endpoint lease.
	ServerAnnotation = "proxy.skewproof.io/server"
	// AddressAnnotation is the host:port at which this server accepts requests of peers.
	AddressAnnotation = "proxy.skewproof.io/address"
	// ServesAnnotation is the [Digest] of what this server serves. It is absent while that is
	// unknown.
	ServesAnnotation = "proxy.skewproof.io/serves"

	endpointPrefix = "skewproof-proxy-"
)

// EndpointLeaseName is the name of a server's endpoint lease. A server has only one.
func EndpointLeaseName(id proxy.ServerID) string { return endpointPrefix + string(id) }

const (
	leaseDuration    = 15 * time.Second
	maxLeaseDuration = time.Hour // longer durations are cut to this
)

// IdentityLease is the content of an identity lease.
type IdentityLease struct {
	ID      proxy.ServerID
	Holder  string
	Renewed time.Time // by the holder's clock; zero: never
	Host    string    // the server's host name; "" if the lease has none
	Address string    // host:port of a server whose own Mixed Version Proxy is on; "" if the lease has no address
}

// EndpointLease is the content of an endpoint lease.
type EndpointLease struct {
	ID       proxy.ServerID
	Holder   string
	Renewed  time.Time // by the holder's clock; zero: never
	Duration time.Duration
	Address  string // "" if the lease has no valid address
	Serves   string // see [Digest]; "" if the lease has none
}

// isIdentityLease and isEndpointLease check the namespace and the labels, because the selector of
// the watch is not trusted.
func isIdentityLease(l *coordinationv1.Lease) bool {
	return l.Namespace == Namespace && l.Labels[IdentityLabel] == IdentityValue
}

func isEndpointLease(l *coordinationv1.Lease) bool {
	return l.Namespace == Namespace && l.Labels[ComponentLabel] == ComponentValue
}

// readIdentityLease reads an identity lease. The lease must have a holder (upstream:
// isValidPeerIdentityLease).
func readIdentityLease(l *coordinationv1.Lease) (IdentityLease, error) {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return IdentityLease{}, fmt.Errorf("read identity lease %s: it has no holder, so it does not count as a server", l.Name)
	}
	address, err := ParseAddress(l.Annotations[corev1.AnnotationPeerAdvertiseAddress])
	if err != nil {
		address = "" // most leases have no address
	}
	return IdentityLease{
		ID: proxy.ServerID(l.Name), Holder: *l.Spec.HolderIdentity, Renewed: renewed(l), Host: l.Labels[corev1.LabelHostname], Address: address,
	}, nil
}

// readEndpointLease reads an endpoint lease. A lease with a wrong address is usable, without the
// address.
func readEndpointLease(l *coordinationv1.Lease) (lease EndpointLease, usable bool, err error) {
	id, ok := endpointServer(l.Name)
	if !ok || l.Annotations[ServerAnnotation] != string(id) {
		return EndpointLease{}, false,
			fmt.Errorf("read endpoint lease %s: its name is not %q and the server that it is about (%q); it is ignored",
				l.Name, endpointPrefix, l.Annotations[ServerAnnotation])
	}
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return EndpointLease{}, false, fmt.Errorf("read endpoint lease %s: it has no holder, and is ignored", l.Name)
	}
	lease = EndpointLease{ID: id, Holder: *l.Spec.HolderIdentity, Renewed: renewed(l), Duration: duration(l),
		Serves: l.Annotations[ServesAnnotation]}
	address, err := ParseAddress(l.Annotations[AddressAnnotation])
	if err != nil {
		return lease, true, fmt.Errorf("read endpoint lease %s: %w; its server has no known address", l.Name, err)
	}
	lease.Address = address
	return lease, true, nil
}

// endpointServer returns the server of the endpoint lease with this name.
func endpointServer(name string) (proxy.ServerID, bool) {
	id, ok := strings.CutPrefix(name, endpointPrefix)
	return proxy.ServerID(id), ok && id != ""
}

func renewed(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// duration returns how long a lease is valid after a renewal. The default is leaseDuration.
func duration(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil || *l.Spec.LeaseDurationSeconds <= 0 {
		return leaseDuration
	}
	return min(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second, maxLeaseDuration)
}
