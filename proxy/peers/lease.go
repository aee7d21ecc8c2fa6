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
	// ServerAnnotation is the identity of the endpoint lease's server.
	ServerAnnotation = "proxy.skewproof.io/server"
	// AddressAnnotation is the host:port at which that server takes peers' requests.
	AddressAnnotation = "proxy.skewproof.io/address"
	// ServesAnnotation is the [Digest] of what that server serves, absent while that is unknown.
	ServesAnnotation = "proxy.skewproof.io/serves"

	endpointPrefix = "skewproof-proxy-"
)

// EndpointLeaseName is the name of a server's endpoint lease. It has only one.
func EndpointLeaseName(id proxy.ServerID) string { return endpointPrefix + string(id) }

const (
	leaseDuration    = 15 * time.Second
	maxLeaseDuration = time.Hour // longer ones are cut
)

// IdentityLease is what an identity lease says.
type IdentityLease struct {
	ID      proxy.ServerID
	Holder  string
	Renewed time.Time // by the holder's clock; zero: never
	Host    string    // the server's host name; "" if the lease does not say
	Address string    // host:port of a server whose own Mixed Version Proxy is on; "" if the lease does not say
}

// EndpointLease is what an endpoint lease says.
type EndpointLease struct {
	ID       proxy.ServerID
	Holder   string
	Renewed  time.Time // by the holder's clock; zero: never
	Duration time.Duration
	Address  string // "" if what the lease says is no address
	Serves   string // see [Digest]; "" if the lease does not say
}

// isIdentityLease and isEndpointLease check namespace and labels: a selector is not trusted.
func isIdentityLease(l *coordinationv1.Lease) bool {
	return l.Namespace == Namespace && l.Labels[IdentityLabel] == IdentityValue
}

func isEndpointLease(l *coordinationv1.Lease) bool {
	return l.Namespace == Namespace && l.Labels[ComponentLabel] == ComponentValue
}

// readIdentityLease reads an identity lease, which must have a holder (isValidPeerIdentityLease).
func readIdentityLease(l *coordinationv1.Lease) (IdentityLease, error) {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return IdentityLease{}, fmt.Errorf("read identity lease %s: it has no holder, and is not taken for a server", l.Name)
	}
	address, err := ParseAddress(l.Annotations[corev1.AnnotationPeerAdvertiseAddress])
	if err != nil {
		address = "" // most leases have none
	}
	return IdentityLease{
		ID: proxy.ServerID(l.Name), Holder: *l.Spec.HolderIdentity, Renewed: renewed(l), Host: l.Labels[corev1.LabelHostname], Address: address,
	}, nil
}

// readEndpointLease reads an endpoint lease. It is usable if only its address is wrong.
func readEndpointLease(l *coordinationv1.Lease) (lease EndpointLease, usable bool, err error) {
	id, ok := endpointServer(l.Name)
	if !ok || l.Annotations[ServerAnnotation] != string(id) {
		return EndpointLease{}, false, fmt.Errorf("read endpoint lease %s: its name is not %q and the server that it is about (%q); it is ignored",
			l.Name, endpointPrefix, l.Annotations[ServerAnnotation])
	}
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return EndpointLease{}, false, fmt.Errorf("read endpoint lease %s: it has no holder, and is ignored", l.Name)
	}
	lease = EndpointLease{ID: id, Holder: *l.Spec.HolderIdentity, Renewed: renewed(l), Duration: duration(l), Serves: l.Annotations[ServesAnnotation]}
	address, err := ParseAddress(l.Annotations[AddressAnnotation])
	if err != nil {
		return lease, true, fmt.Errorf("read endpoint lease %s: %w; its server has no known address", l.Name, err)
	}
	lease.Address = address
	return lease, true, nil
}

// endpointServer is the server of the endpoint lease of that name.
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

// duration is how long a lease is valid after a renewal, by default leaseDuration.
func duration(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil || *l.Spec.LeaseDurationSeconds <= 0 {
		return leaseDuration
	}
	return min(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second, maxLeaseDuration)
}
