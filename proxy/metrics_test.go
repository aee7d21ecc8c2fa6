package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/skewproof/skewproof/proxy/discovery"
)

func TestMetrics(t *testing.T) {
	m := NewMetrics()
	events := append(capablePeers(nil, "a", "b"), PeerAppeared{ID: "c"}, PeerAddress{ID: "c", Address: "c.test:1"}, Fetched{At: epoch, Results: []FetchResult{
		{ID: "c", Roots: [roots]RootResult{{Groups: groups(pods)}, {Groups: groups(widget)}}}}}, PeerAddress{ID: "c"})
	s := newShell(t, Reference(), events, transportFunc(func(r *http.Request) (*http.Response, error) {
		switch {
		case strings.HasPrefix(r.URL.Host, "a."):
			return nil, refusesConnection()
		case r.Method == "POST":
			traced(r.Context(), true) // as net/http does
			return nil, io.ErrUnexpectedEOF
		}
		return says(200, "b"), nil
	}), func(c *Config) { c.Observer = Observers{m, &journal{}} })
	s.ask("GET", gadgetsPath, "")                                         // a fails and is avoided, b answers
	s.ask("GET", gadgetsPath, "")                                         // b answers
	s.ask("POST", gadgetsPath, "x")                                       // b breaks off
	s.ask("GET", jobsPath, "")                                            // served here
	s.ask("GET", "/apis/made.up/v1/by-a-client", "")                      // served nowhere
	s.ask("GET", "/apis/example.com/v1/widgets", "")                      // served by c, whose address is not known
	s.ask("GET", "/apis", "", "Accept", discovery.AcceptV2)               // merged
	s.ask("GET", "/apis", "", "Accept", discovery.AcceptV2)               // from the cache
	s.ask("GET", "/apis", "", "Accept", discovery.AcceptV2NoPeer)         // the local server's own
	s.ask("GET", "/apis/new.k8s.io/v1", "", "Accept", "application/json") // merged
	m.Fetched(200)                                                        // called by the code that fetches discovery
	const want = `
# HELP aggregator_discovery_nopeer_requests_total Requests for the local server's own discovery (profile=nopeer).
# TYPE aggregator_discovery_nopeer_requests_total counter
aggregator_discovery_nopeer_requests_total 1
# HELP aggregator_discovery_peer_aggregated_cache_hits_total Requests for merged discovery that were answered from the cache.
# TYPE aggregator_discovery_peer_aggregated_cache_hits_total counter
aggregator_discovery_peer_aggregated_cache_hits_total 2
# HELP aggregator_discovery_peer_aggregated_cache_misses_total Requests for merged discovery for which a document was merged.
# TYPE aggregator_discovery_peer_aggregated_cache_misses_total counter
aggregator_discovery_peer_aggregated_cache_misses_total 1
# HELP apiserver_peer_proxy_errors_total Requests for which no peer's address was known (endpoint_resolution).
# TYPE apiserver_peer_proxy_errors_total counter
apiserver_peer_proxy_errors_total{group="example.com",resource="widgets",type="endpoint_resolution",version="v1"} 1
# HELP apiserver_rerouted_request_total Requests that were sent to a peer because the local server does not serve them, by the code of the answer. Fetches of discovery have no group, version and resource.
# TYPE apiserver_rerouted_request_total counter
apiserver_rerouted_request_total{code="200",group="",resource="",version=""} 1
apiserver_rerouted_request_total{code="200",group="new.k8s.io",resource="gadgets",version="v1"} 2
apiserver_rerouted_request_total{code="503",group="new.k8s.io",resource="gadgets",version="v1"} 1
# HELP skewproof_proxy_attempts_total Attempts at peers, by outcome: answered, not-delivered, undecided, refused; unauthorized if the peer did not accept this server's certificate.
# TYPE skewproof_proxy_attempts_total counter
skewproof_proxy_attempts_total{outcome="answered"} 2
skewproof_proxy_attempts_total{outcome="not-delivered"} 1
skewproof_proxy_attempts_total{outcome="undecided"} 1
# HELP skewproof_proxy_decisions_total Decisions about requests, by action and reason.
# TYPE skewproof_proxy_decisions_total counter
skewproof_proxy_decisions_total{action="forward",reason="capable"} 3
skewproof_proxy_decisions_total{action="local",reason="local"} 1
skewproof_proxy_decisions_total{action="local",reason="not-routed"} 1
skewproof_proxy_decisions_total{action="not-found",reason="nobody"} 1
skewproof_proxy_decisions_total{action="unavailable",reason="not-repeatable"} 1
skewproof_proxy_decisions_total{action="unavailable",reason="unresolved"} 1
# HELP skewproof_proxy_ejections_total How often a failure made the server avoid a peer for a while.
# TYPE skewproof_proxy_ejections_total counter
skewproof_proxy_ejections_total 2
# HELP skewproof_proxy_failovers_total Attempts at another peer after one had failed.
# TYPE skewproof_proxy_failovers_total counter
skewproof_proxy_failovers_total 1
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(m); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
