package apiserver

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/skewproof/skewproof/proxy"
)

// PeerAnnotation is the annotation of audit events that names the peer that answered the request:
// its identity, as in its lease.
const PeerAnnotation = "mixed-version-proxy.skewproof.github.io/peer"

// ForwardedByAnnotation is the annotation of audit events of a peer's requests. It has the common
// name of the front-proxy certificate with which the peer has proved that it may forward.
const ForwardedByAnnotation = "mixed-version-proxy.skewproof.github.io/forwarded-by"

// observer writes into a request's audit event which peer has answered, and tells the sources which
// peers fail.
type observer struct{ *Proxy }

func (observer) Decided(context.Context, proxy.Request, proxy.Decision, int) {}
func (observer) Discovered(context.Context, proxy.DiscoverySource)           {}

func (o observer) Ejected(_ context.Context, peer proxy.ServerID) { o.sources.Failed(peer) }

// An event takes no second value of an annotation.
func (observer) Attempted(ctx context.Context, _ proxy.Request, a proxy.AttemptResult) {
	if a.Answered {
		audit.AddAuditAnnotation(ctx, PeerAnnotation, string(a.Peer))
	}
}

// upstreams are the metrics that kube-apiserver registers even if its own Mixed Version Proxy is
// off. They would stay 0.
var upstreams = []string{
	"aggregator_discovery_peer_aggregated_cache_hits_total", "aggregator_discovery_peer_aggregated_cache_misses_total",
	"aggregator_discovery_nopeer_requests_total",
}

// register adds metrics to those of the server, in place of upstream's with the same names.
func register(all ...prometheus.Collector) error {
	registry, ok := legacyregistry.DefaultGatherer.(metrics.KubeRegistry)
	if !ok {
		return fmt.Errorf("register the metrics: the server's registry is a %T", legacyregistry.DefaultGatherer)
	}
	for _, name := range upstreams {
		registry.Unregister(prometheus.NewCounter(prometheus.CounterOpts{Name: name}))
	}
	for _, c := range all {
		registry.RawMustRegister(undescribed{c})
	}
	return nil
}

// undescribed registers metrics without their descriptions, because a registry refuses for ever a
// name that was once described with another help text.
type undescribed struct{ prometheus.Collector }

// Describe sends nothing.
func (undescribed) Describe(chan<- *prometheus.Desc) {}
