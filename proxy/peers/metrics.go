package peers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skewproof/skewproof/proxy"
)

// These are the types of upstream's counter of failures (pkg/util/peerproxy/metrics).
const (
	failedLeaseList  = "lease_list"
	failedResolution = "hostport_resolution"
	failedFetch      = "fetch_discovery"
)

// Metrics counts failures to learn from peers, and reports the age of the knowledge. It is a
// prometheus.Collector, which the caller registers. It is safe for concurrent use. A nil Metrics
// counts nothing.
type Metrics struct {
	store  *proxy.Store
	errors *prometheus.CounterVec
	age    *prometheus.Desc
	peers  *prometheus.Desc
}

// NewMetrics returns the metrics of the sources that feed a store.
func NewMetrics(store *proxy.Store) *Metrics {
	m := &Metrics{
		store: store,
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_peer_discovery_sync_errors_total",
			Help: "Failures to learn what peers serve, by what failed.",
		}, []string{"type"}),
		age: prometheus.NewDesc("skewproof_proxy_peer_knowledge_age_seconds",
			"Time since the older of a peer's two discovery documents was last confirmed. Absent for a peer until both have been fetched.",
			[]string{"peer"}, nil),
		peers: prometheus.NewDesc("skewproof_proxy_peers",
			"Live peers, by how they are reached: proxied (at the address of their own proxy), direct (the kube-apiserver has no proxy and is "+
				"asked itself) or unknown (nobody knows the address).",
			[]string{"reached"}, nil),
	}
	for _, kind := range []string{failedLeaseList, failedResolution, failedFetch} {
		m.errors.WithLabelValues(kind) // so that a counter that was never increased is 0 and not missing
	}
	return m
}

func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	m.errors.Describe(descs)
	descs <- m.age
	descs <- m.peers
}

func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.errors.Collect(metrics)
	now := time.Now()
	reached := map[string]int{}
	for _, p := range m.store.Table().Peers() {
		if p.Live {
			reached[reachedHow(p)]++
		}
		oldest := p.Learned[0]
		for _, at := range p.Learned {
			if at.Before(oldest) {
				oldest = at
			}
		}
		if !p.Live || oldest.IsZero() {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, now.Sub(oldest).Seconds(), string(p.ID))
	}
	for _, how := range []string{"proxied", "direct", "unknown"} {
		metrics <- prometheus.MustNewConstMetric(m.peers, prometheus.GaugeValue, float64(reached[how]), how)
	}
}

func reachedHow(p proxy.PeerView) string {
	switch {
	case p.Address == "":
		return "unknown"
	case p.Direct:
		return "direct"
	default:
		return "proxied"
	}
}

func (m *Metrics) failed(kind string) {
	if m != nil {
		m.errors.WithLabelValues(kind).Inc()
	}
}
