package sim

import "github.com/skewproof/skewproof/proxy"

// Impossible are the states that no run can come to under a policy, each with the reason. That a search has not reached them says nothing
// against it; that it has would be an error of this table, which a test looks for.
func Impossible(p proxy.Policy) map[State]string {
	k, r := p.Knowledge, p.Routing
	never := map[State]string{}
	for _, rule := range []struct {
		holds  bool
		reason string
		states []State
	}{
		{!p.Quirks.CrashOnFailedFetch, "a failed fetch does not end a server", []State{ReachedCrash}},
		{k.WaitForPeers, "a server is not ready before it has asked every peer", []State{ReachedUnsynced}},
		{!k.FailClosed, "what is unknown counts as absent", []State{ReachedUnknown, ReachedWatchStalled}},
		{k.ForgetOnRestart && k.Extensions == proxy.ExtensionsExact,
			"a server that ceases to serve something built in has restarted, and knows nothing of what peers served before; what is not built in is not taken from peers",
			[]State{ReachedMutualBelief}},
		{r.Attempts < 2, "there is one attempt", []State{ReachedFailover}},
		{r.Ejection == 0, "no peer is avoided", []State{ReachedEjected}},
		{!r.RefuseAtHop, "who is asked by a peer and does not serve it answers 404", []State{ReachedRefused}},
		{!p.Discovery.Merge, "discovery is not merged", []State{ReachedDiscovery}},
		{k.StorageVersions, "peers are not asked what they serve", []State{ReachedHalfFetched, ReachedFetchFailed, ReachedUnsynced}},
	} {
		if rule.holds {
			for _, s := range rule.states {
				never[s] = rule.reason
			}
		}
	}
	return never
}
