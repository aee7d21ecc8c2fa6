package peers

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
)

// How identity leases are found.
const (
	// Namespace is the namespace of identity leases.
	Namespace = metav1.NamespaceSystem

	// IdentityLabel and IdentityValue label a kube-apiserver's identity lease.
	IdentityLabel = "apiserver.kubernetes.io/identity"
	IdentityValue = "kube-apiserver"
)

// IdentityLease is the content of an identity lease.
type IdentityLease struct {
	ID      proxy.ServerID
	Holder  string
	Renewed time.Time // by the holder's clock; zero: never
	// Host is the server's host name, if the server's identity belongs to this name. Otherwise it is
	// empty.
	Host string
}

// isIdentityLease checks the namespace and the label, because the selector of the watch is not
// trusted.
func isIdentityLease(l *coordinationv1.Lease) bool {
	return l.Namespace == Namespace && l.Labels[IdentityLabel] == IdentityValue
}

// readIdentityLease reads an identity lease. The lease must have a holder (upstream:
// isValidPeerIdentityLease).
func readIdentityLease(l *coordinationv1.Lease) (IdentityLease, error) {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return IdentityLease{}, fmt.Errorf("read identity lease %s: it has no holder, so it does not count as a server", l.Name)
	}
	lease := IdentityLease{ID: proxy.ServerID(l.Name), Holder: *l.Spec.HolderIdentity}
	if host := l.Labels[corev1.LabelHostname]; identityOf(host) == lease.ID {
		lease.Host = host
	}
	if l.Spec.RenewTime != nil {
		lease.Renewed = l.Spec.RenewTime.Time
	}
	return lease, nil
}

// identityOf is the identity of the kube-apiserver on a host, since v1.26 (k8s.io/apiserver,
// pkg/server, NewConfig).
func identityOf(host string) proxy.ServerID {
	var data []byte
	for _, part := range []string{host, "kube-apiserver"} {
		data = binary.BigEndian.AppendUint16(data, uint16(len(part)))
		data = append(data, part...)
	}
	hash := sha256.Sum256(data)
	return proxy.ServerID("apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16])))
}
