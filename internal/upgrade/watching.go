package upgrade

import (
	"slices"

	"golang.org/x/mod/semver"

	"github.com/skewproof/skewproof/reports"
)

// allMetrics are metrics of kube-apiserver. Source: k8s.io/apiserver pkg/util/peerproxy/metrics,
// pkg/endpoints/discovery/aggregated/metrics.go and pkg/endpoints/metrics.
var allMetrics = []reports.PlanMetric{
	{Name: "apiserver_rerouted_request_total", Since: "1.28",
		Bad:   "0 at every server while clients use resources that differ; or a rise by thousands within a minute",
		Means: "0: no request is passed on, so the proxy has no effect. Thousands: requests go round between servers (finding 23)."},
	{Name: "apiserver_peer_proxy_errors_total", Since: "1.36", Bad: "rising for longer than 15 s",
		Means: "`type=\"proxy_transport\"`: a peer cannot be reached; `type=\"endpoint_resolution\"`: a peer has no address. Clients get 503."},
	{Name: "apiserver_peer_discovery_sync_errors_total", Since: "1.36", Bad: "rising while no server restarts",
		Means: "The server does not know what a peer serves, and answers 404 for it (findings 1, 6, 11, 13, 35)."},
	{Name: "aggregator_discovery_peer_aggregated_cache_misses_total", Since: "1.35", Bad: "rising while no server restarts",
		Means: "Merged discovery changes again and again."},
	{Name: "apiserver_request_total", Since: "1.14",
		Bad:   "a rate of `code=\"404\"` or `code=\"503\"` above that of the day before, for a group that appears or vanishes",
		Means: "404: servers tell clients that the resource does not exist. 503: the peer that serves it cannot be reached; clients try again."},
	{Name: "apiserver_requested_deprecated_apis", Since: "1.19", Bad: "1 for a version that vanishes",
		Means: "A client still requests that version."},
}

// metrics returns the metrics that one of the two versions has.
func metrics(from, to string) []reports.PlanMetric {
	newest := to
	if semver.Compare(from, to) > 0 {
		newest = from
	}
	return slices.DeleteFunc(slices.Clone(allMetrics), func(m reports.PlanMetric) bool {
		return semver.Compare(semver.MajorMinor(newest), "v"+m.Since) < 0
	})
}

// stop returns the conditions under which the operator must not continue with the next server.
func stop(p reports.UpgradePlan, then reports.PlanProtection) []string {
	all := []string{
		"A server is not ready five minutes after its start, or restarts by itself.",
		"`apiserver_request_total{code=\"404\"}` rises for a group that appears or vanishes, at any server.",
		"A namespace stays in `Terminating`, or objects vanish that nobody deleted.",
		"Two servers list different resources two minutes after the last step, with the proxy on.",
		"The network between control-plane nodes fails. Do not restart another server before the network works again (findings 1 and 6).",
	}
	if then.Ways[0].Protected && semver.Compare(p.To, "v1.36") >= 0 {
		all = append(all, "`apiserver_peer_discovery_sync_errors_total` or `apiserver_peer_proxy_errors_total` rises for more than 15 s while no server restarts.")
	}
	return all
}

// back says how to go back.
func back(p reports.UpgradePlan) []string {
	fields := ""
	if len(p.FieldHarms) > 0 {
		fields = ", and unset every field that the versions treat differently"
	}
	return []string{
		"The safest way is forward: with one version, no server lacks anything.",
		"Otherwise delete every object that only `" + p.To + "` serves first" + fields + ": older servers cannot delete it." + byThemselves(p, " Put its old manifest back before you delete these: it creates them whenever it starts."),
		"Then put the saved manifest of kube-apiserver back, on the last upgraded node first (kubeadm has no downgrade). After each server, wait " +
			"until its lease is renewed: until then peers believe that it serves more (finding 22).",
		"If `" + p.To + "` has stored objects in a version that `" + p.From + "` cannot read, restore the snapshot of etcd on all members.",
	}
}
