package peers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/skewproof/skewproof/proxy"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := proxy.NewStore(proxy.Reference(), "self")
		m := NewMetrics(store)
		registry := prometheus.NewPedanticRegistry()
		if err := registry.Register(m); err != nil {
			t.Fatal(err)
		}
		both := func(id proxy.ServerID, api string) proxy.FetchResult {
			return proxy.FetchResult{ID: id, Incarnation: "i", Roots: [2]proxy.RootResult{{Groups: document("v1 pods"), Failed: api}, {Groups: document("apps/v1 deployments")}}}
		}
		store.Observe(proxy.PeerAppeared{ID: "a", Incarnation: "i"}, proxy.PeerAppeared{ID: "b", Incarnation: "i"}, proxy.PeerAppeared{ID: "half", Incarnation: "i"},
			proxy.Fetched{At: time.Now(), Results: []proxy.FetchResult{both("a", ""), both("b", ""), both("half", "no")}})
		store.Observe(proxy.PeerAddress{ID: "a", Address: "192.0.2.1:6443"}, proxy.PeerAddress{ID: "b", Address: "192.0.2.2:6443", Direct: true},
			proxy.PeerAppeared{ID: "c", Incarnation: "i"}, proxy.PeerAddress{ID: "c", Address: "192.0.2.3:6443"}, proxy.PeerAppeared{ID: "gone", Incarnation: "i"},
			proxy.PeerGone{ID: "gone"})
		time.Sleep(10 * time.Second)
		store.Observe(proxy.Fetched{At: time.Now(), Results: []proxy.FetchResult{both("b", ""), both("a", "no")}})
		time.Sleep(5 * time.Second)
		m.failed(failedFetch)
		m.failed(failedFetch)
		m.failed(failedResolution)
		want := `
# HELP apiserver_peer_discovery_sync_errors_total Failures to learn what peers serve, by what failed.
# TYPE apiserver_peer_discovery_sync_errors_total counter
apiserver_peer_discovery_sync_errors_total{type="fetch_discovery"} 2
apiserver_peer_discovery_sync_errors_total{type="hostport_resolution"} 1
apiserver_peer_discovery_sync_errors_total{type="lease_list"} 0
# HELP skewproof_proxy_peer_knowledge_age_seconds Time since the older of a peer's two discovery documents was last confirmed. Absent for a peer until both have been fetched.
# TYPE skewproof_proxy_peer_knowledge_age_seconds gauge
skewproof_proxy_peer_knowledge_age_seconds{peer="a"} 15
skewproof_proxy_peer_knowledge_age_seconds{peer="b"} 5
# HELP skewproof_proxy_peers Live peers, by how they are reached: proxied (at the address of their own proxy), direct (the kube-apiserver has no proxy and is asked itself) or unknown (nobody knows the address).
# TYPE skewproof_proxy_peers gauge
skewproof_proxy_peers{reached="direct"} 1
skewproof_proxy_peers{reached="proxied"} 2
skewproof_proxy_peers{reached="unknown"} 1
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		(*Metrics)(nil).failed(failedFetch) // counts nothing, and does not panic
	})
}
