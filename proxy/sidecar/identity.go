package sidecar

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/proxy/peers"
)

// serverID is the identity that a kube-apiserver takes on a host of that name: a hash of the host name and of the component's name, each
// after its length in two bytes. Source: NewConfig in k8s.io/apiserver/pkg/server/config.go.
func serverID(hostname string) string {
	hash := sha256.New()
	for _, part := range []string{hostname, "kube-apiserver"} {
		hash.Write(binary.BigEndian.AppendUint16(nil, uint16(len(part))))
		hash.Write([]byte(part))
	}
	name := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash.Sum(nil)[:16])
	return "apiserver-" + strings.ToLower(name)
}

const (
	identityEvery = 5 * time.Second
	// identityTimeout is for how long a ready kube-apiserver may be without its identity lease, which it renews every 10 s.
	identityTimeout = 30 * time.Second
)

// checkIdentity warns of a kube-apiserver that goes by another name than this sidecar believes: peers would take the two names for two
// servers, one of which can never be reached, and answer 503 for what that one might serve. It returns when the lease has been found.
func (s *sidecar) checkIdentity(ctx context.Context, client kubernetes.Interface) {
	ticker := time.NewTicker(identityEvery)
	defer ticker.Stop()
	missing, warned := time.Duration(0), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !s.probe.Ready() {
			continue
		}
		_, err := client.CoordinationV1().Leases(peers.Namespace).Get(ctx, string(s.server), metav1.GetOptions{})
		switch {
		case err == nil:
			return
		case apierrors.IsNotFound(err):
			missing += identityEvery
		default:
			continue // nothing was found out
		}
		if missing >= identityTimeout && !warned {
			warned = true
			s.log.Warn("the local kube-apiserver has no identity lease of this name: if its host has another name, give the name of its lease in "+
				peers.Namespace+" as --server-id", "server", s.server)
		}
	}
}
