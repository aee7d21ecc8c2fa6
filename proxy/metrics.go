package proxy

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what a [Handler] does. It is an [Observer] and a prometheus.Collector, which the
// caller registers. Make it with [NewMetrics]. Metrics that upstream has too have upstream's names
// (k8s.io/apiserver, util/peerproxy/metrics and endpoints/discovery/aggregated/metrics.go). It is
// safe for concurrent use.
//
// Upstream's apiserver_peer_proxy_errors_total has a second type, proxy_transport. Upstream counts
// it only for a request without a user, which authentication rules out, and never for a peer that
// cannot be reached. So Metrics does not have it: failed attempts are in
// skewproof_proxy_attempts_total.
//
// Labels have the group, version and resource only if it is known that some server serves them.
// Otherwise they are "unknown", so that clients cannot create series with requests for resources
// that do not exist.
type Metrics struct {
	registry  *prometheus.Registry
	rerouted  *prometheus.CounterVec
	errors    *prometheus.CounterVec
	cacheHits prometheus.Counter
	cacheMiss prometheus.Counter
	noPeer    prometheus.Counter
	decisions *prometheus.CounterVec
	attempts  *prometheus.CounterVec
	failovers prometheus.Counter
	ejections prometheus.Counter
}

var (
	_ Observer             = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	factory := promauto.With(registry)
	resource := []string{"group", "version", "resource"}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	one := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Metrics{
		registry: registry,
		rerouted: vec("apiserver_rerouted_request_total",
			"Requests that were sent to a peer because the local server does not serve them, by the code of the answer. "+
				"Fetches of discovery have no group, version and resource.",
			append([]string{"code"}, resource...)...),
		errors: vec("apiserver_peer_proxy_errors_total",
			"Requests for which no peer's address was known (endpoint_resolution).",
			append([]string{"type"}, resource...)...),
		cacheHits: one("aggregator_discovery_peer_aggregated_cache_hits_total",
			"Requests for merged discovery that were answered from the cache."),
		cacheMiss: one("aggregator_discovery_peer_aggregated_cache_misses_total",
			"Requests for merged discovery for which a document was merged."),
		noPeer: one("aggregator_discovery_nopeer_requests_total",
			"Requests for the local server's own discovery (profile=nopeer)."),
		decisions: vec("skewproof_proxy_decisions_total", "Decisions about requests, by action and reason.", "action", "reason"),
		attempts: vec("skewproof_proxy_attempts_total",
			"Attempts at peers, by outcome: answered, not-delivered, undecided, refused; "+
				"unauthorized if the peer did not accept this server's certificate.", "outcome"),
		failovers: one("skewproof_proxy_failovers_total", "Attempts at another peer after one had failed."),
		ejections: one("skewproof_proxy_ejections_total", "How often a failure made the server avoid a peer for a while."),
	}
}

// Decided counts the first decision to forward a request; later ones are failovers.
func (m *Metrics) Decided(_ context.Context, r Request, d Decision, tried int) {
	if d.Action == Forward && tried > 0 {
		m.failovers.Inc()
		return
	}
	m.decisions.WithLabelValues(d.Action.String(), string(d.Reason)).Inc()
	switch {
	case d.Action == Unavailable && tried > 0:
		m.rerouted.WithLabelValues(append([]string{"503"}, labels(r)...)...).Inc()
	case d.Reason == ReasonUnresolved:
		m.errors.WithLabelValues(append([]string{"endpoint_resolution"}, labels(r)...)...).Inc()
	}
}

func (m *Metrics) Attempted(_ context.Context, r Request, a AttemptResult) {
	switch {
	case a.Answered:
		m.attempts.WithLabelValues("answered").Inc()
		m.rerouted.WithLabelValues(append([]string{strconv.Itoa(a.Code)}, labels(r)...)...).Inc()
	case a.Unauthorized:
		m.attempts.WithLabelValues("unauthorized").Inc()
	default:
		m.attempts.WithLabelValues(a.Outcome.String()).Inc()
	}
}

func (m *Metrics) Ejected(context.Context, ServerID) { m.ejections.Inc() }

func (m *Metrics) Discovered(_ context.Context, from DiscoverySource) {
	switch from {
	case DiscoveryCached:
		m.cacheHits.Inc()
	case DiscoveryMerged:
		m.cacheMiss.Inc()
	case DiscoveryNoPeer:
		m.noPeer.Inc()
	}
}

// Fetched counts an answer to a fetch of discovery from a peer.
func (m *Metrics) Fetched(code int) { m.rerouted.WithLabelValues(strconv.Itoa(code), "", "", "").Inc() }

// labels are a request's group, version and resource. A resource of KindOther may not exist.
func labels(r Request) []string {
	if r.Kind == KindOther {
		return []string{"unknown", "unknown", "unknown"}
	}
	return []string{r.Resource.Group, r.Resource.Version, r.Resource.Resource}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(c chan<- *prometheus.Desc) { m.registry.Describe(c) }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(c chan<- prometheus.Metric) { m.registry.Collect(c) }
