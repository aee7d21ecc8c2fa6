package proxy

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The group version that [IncompleteMarked] lists. Clients show its name to people, as in "stale
// GroupVersion discovery: incomplete.proxy.skewproof.io/v1".
const (
	IncompleteGroup   = "incomplete.proxy.skewproof.io"
	IncompleteVersion = "v1"
)

// incompleteMark is the group version by which discovery shows that it is incomplete. It must not
// be changed.
var incompleteMark = apidiscoveryv2.APIGroupDiscovery{
	ObjectMeta: metav1.ObjectMeta{Name: IncompleteGroup},
	Versions:   []apidiscoveryv2.APIVersionDiscovery{{Version: IncompleteVersion, Freshness: apidiscoveryv2.DiscoveryFreshnessStale}},
}

// Incomplete reports whether merged discovery may lack resources of some live peer, so that it must
// not be answered as if it were complete. For the same reason, routing answers 503 to requests for
// resources that are not listed. Incomplete is false before the first synchronisation, when
// discovery is answered 503.
func (t *Table) Incomplete() bool {
	return t.incompleteReason() != ""
}

// incompleteReason is the reason of the 503 for resources that are not listed; "" if discovery is
// complete.
func (t *Table) incompleteReason() Reason {
	switch {
	case t.policy.Discovery.Incomplete == IncompleteAsComplete || !t.policy.Knowledge.FailClosed || !t.synced || !t.localKnown:
		return ""
	case t.watchStalled:
		return ReasonWatchStalled
	}
	for _, p := range t.peers {
		if p.live && (!p.learnt[RootCore].known() || !p.learnt[RootGroups].known()) {
			return ReasonUnknown
		}
	}
	return ""
}

// marks reports whether discovery lists the mark.
func (t *Table) marks() bool {
	return t.policy.Discovery.Incomplete == IncompleteMarked && t.Incomplete()
}

// isMark reports whether a group version is the mark.
func isMark(group, version string) bool {
	return group == IncompleteGroup && version == IncompleteVersion
}

// refuseIncomplete answers 503, and names the peers whose resources are unknown.
func (e *exchange) refuseIncomplete() {
	d := Decision{Action: Unavailable, Reason: e.table.incompleteReason()}
	if d.Reason == ReasonUnknown {
		d.Peers = e.table.unheard()
	}
	e.h.observer.Decided(e.r.Context(), e.request, d, 0)
	e.unavailable(d)
}

// unheard returns the live peers whose document of one of the roots is unknown.
func (t *Table) unheard() []PeerTrouble {
	unheard := t.unknown(Request{Resource: Resource{Group: IncompleteGroup}})
	for _, p := range t.unknown(Request{}) {
		if !slices.ContainsFunc(unheard, func(known PeerTrouble) bool { return known.ID == p.ID }) {
			unheard = append(unheard, p)
		}
	}
	return unheard
}
