package existing

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// identityLeases selects the leases by which kube-apiservers find each other (k8s.io/kubernetes,
// pkg/controlplane/apiserver/server.go).
const identityLeases = "apiserver.kubernetes.io/identity=kube-apiserver"

// unnamed returns the servers of the cluster that none of the doors leads to. It knows the servers
// by their identity leases and by the endpoints of the Service kubernetes, as the first server
// lists them. Nothing connects a lease with an address for certain, so the numbers decide, and the
// names only describe.
func unnamed(ctx context.Context, doors []*door) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(doors[0].config)
	if err != nil {
		return nil, err
	}
	leases, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: identityLeases})
	if err != nil {
		return nil, fmt.Errorf("list the identity leases in %s: %w", metav1.NamespaceSystem, err)
	}
	endpoints, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil, fmt.Errorf("list the endpoints of the Service kubernetes: %w", err)
	}
	named, known := map[string]bool{}, map[string]bool{} // servers; their names and addresses
	for _, d := range doors {
		named[d.server] = true
		for _, name := range append(d.names, d.server, hostOf("//"+d.address), hostOf(d.config.Host)) {
			known[name] = true
		}
	}
	var hosts, strange, addresses []string
	for _, l := range valid(leases.Items) {
		host := l.Labels[corev1.LabelHostname]
		if hosts = append(hosts, host); !known[host] {
			strange = append(strange, host)
		}
	}
	for _, slice := range endpoints.Items {
		for _, e := range slice.Endpoints {
			addresses = append(addresses, slices.DeleteFunc(e.Addresses, func(a string) bool { return known[a] })...)
		}
	}
	missing := max(len(hosts)-len(named), len(addresses))
	switch {
	case missing <= 0:
		return nil, nil
	case len(strange) == missing:
		return strange, nil
	case len(addresses) == missing:
		return addresses, nil
	}
	return []string{fmt.Sprintf("%d of %s", missing, strings.Join(hosts, ", "))}, nil
}

// hostOf is the host of a URL; empty if it has none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// valid returns the leases that have not expired, by the clocks of the servers. A peer asks a
// server until its lease has expired, even if the server is gone.
func valid(leases []coordinationv1.Lease) []coordinationv1.Lease {
	var now time.Time
	for _, l := range leases {
		if r := l.Spec.RenewTime; r != nil && r.After(now) {
			now = r.Time
		}
	}
	return slices.DeleteFunc(leases, func(l coordinationv1.Lease) bool {
		r, seconds := l.Spec.RenewTime, l.Spec.LeaseDurationSeconds
		return r == nil || seconds == nil || now.Sub(r.Time) > time.Duration(*seconds)*time.Second
	})
}
