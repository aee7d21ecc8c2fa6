package proxy

import (
	"cmp"
	"slices"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Decide returns the decision about a request. tried are the failed attempts in order. now is the
// time at which ejections are checked. pick returns a number in [0,n) to choose among n > 1 equal
// peers, like rand.IntN.
//
// Decide applies these rules in this order:
//   - A request for neither a resource nor (with RoutingPolicy.DiscoveryPaths) the discovery of a
//     group is served here.
//   - A request from a peer is answered here (KEP-4020, Risks and Mitigations 4: at most one hop).
//   - A request for something that the local server serves is served here.
//   - Otherwise a peer that serves it gets the request. If no such peer can be reached, the answer
//     is 503 (KEP-4020, Goals: never 404).
//   - While it is not known what some live server serves, the answer is 503 (with
//     KnowledgePolicy.FailClosed).
//   - If no server serves it, the answer is the local server's own 404.
func (t *Table) Decide(r Request, tried []Attempt, now time.Time, pick func(n int) int) Decision {
	routed := r.Kind == KindResource || r.Kind == KindDiscovery && t.policy.Routing.DiscoveryPaths
	if !routed {
		return Decision{Action: ServeLocally, Reason: ReasonNotRouted}
	}
	if t.policy.Knowledge.StorageVersions {
		return t.decideByStorageVersions(r, tried, pick)
	}
	failClosed := t.policy.Knowledge.FailClosed
	local := t.servedHere(r, now)
	switch {
	case r.Rerouted && (local || !t.policy.Routing.RefuseAtHop):
		return Decision{Action: ServeLocally, Reason: ReasonRerouted}
	case r.Rerouted:
		return Decision{Action: Unavailable, Reason: ReasonRerouted}
	case local:
		return Decision{Action: ServeLocally, Reason: ReasonLocal}
	case failClosed && !t.localKnown:
		return Decision{Action: Unavailable, Reason: ReasonUnsynced}
	case !failClosed && !t.synced:
		return Decision{Action: ServeLocally, Reason: ReasonUnsynced}
	}
	capable := t.capable(r)
	switch {
	case len(capable) > 0:
		return t.choose(capable, r, tried, now, pick)
	case failClosed && !t.synced:
		return Decision{Action: Unavailable, Reason: ReasonUnsynced}
	case failClosed && t.watchStalled:
		return Decision{Action: Unavailable, Reason: ReasonWatchStalled}
	}
	if unknown := t.unknown(r); failClosed && len(unknown) > 0 && (!t.extensions.covers(r.Resource) || t.foreign(r.Resource)) {
		return Decision{Action: Unavailable, Reason: ReasonUnknown, Peers: unknown}
	}
	if doubted := t.doubted(r); failClosed && len(doubted) > 0 {
		return Decision{Action: Unavailable, Reason: ReasonUnknown, Peers: doubted}
	}
	return Decision{Action: NotFound, Reason: ReasonNobody}
}

// servedHere reports whether the local server can serve a request.
func (t *Table) servedHere(r Request, now time.Time) bool {
	for root := range t.local {
		index := t.local[root].index
		if now.Before(t.routedUntil) {
			index = t.routed[root]
		}
		if listed(index, r, t.policy.Routing.Subresources) {
			return true
		}
	}
	return t.policy.Knowledge.Extensions == ExtensionsExact && t.extensions.serves(r) && !(r.Kind != KindDiscovery && t.foreign(r.Resource))
}

// capable returns the peers that can serve a request.
func (t *Table) capable(r Request) []*peer {
	var capable []*peer
	for _, p := range t.peers {
		for root := range p.learnt {
			if d := &p.learnt[root]; listed(d.index, r, t.policy.Routing.Subresources) && !t.excluded(r, p, d) {
				capable = append(capable, p)
				break
			}
		}
	}
	return capable
}

// excluded reports whether a document that lists a resource must not be used to route a request for
// it. A group or version is excluded if all of its resources are excluded.
func (t *Table) excluded(r Request, p *peer, d *document) bool {
	return !d.some(r, func(one Resource) bool {
		return !t.extensions.exclude(one, d.at) || t.foreign(one) || t.native(p, d, one)
	})
}

// some reports whether a resource that a request is about satisfies is. For a group or version,
// this is any of its resources that the document lists. A version without resources counts as one
// without a name.
func (d *document) some(r Request, is func(Resource) bool) bool {
	if r.Kind != KindDiscovery {
		return is(r.Resource)
	}
	for _, g := range d.groups {
		if g.Name != r.Resource.Group {
			continue
		}
		for _, v := range g.Versions {
			if r.Resource.Version != "" && v.Version != r.Resource.Version {
				continue
			}
			named := func(name string) bool { return is(Resource{Group: g.Name, Version: v.Version, Resource: name}) }
			if len(v.Resources) == 0 && named("") ||
				slices.ContainsFunc(v.Resources, func(r apidiscoveryv2.APIResourceDiscovery) bool { return named(r.Resource) }) {
				return true
			}
		}
	}
	return false
}

// unknown returns the live peers that may serve a request: their document was never fetched.
func (t *Table) unknown(r Request) []PeerTrouble {
	root := r.Resource.root()
	var unknown []PeerTrouble
	for _, p := range t.peers {
		if p.live && !p.learnt[root].known() {
			unknown = append(unknown, PeerTrouble{p.id, cmp.Or(p.learnt[root].failed, "it has not yet said what it serves")})
		}
	}
	return unknown
}

// doubted returns the live peers that may serve a request for an extension that was deleted: they
// still list the resource, so it may be built in there.
func (t *Table) doubted(r Request) []PeerTrouble {
	if !t.extensions.retiring() {
		return nil
	}
	var doubted []PeerTrouble
	for _, p := range t.peers {
		if p.live && slices.ContainsFunc(p.learnt[:], func(d document) bool {
			return listed(d.index, r, t.policy.Routing.Subresources) &&
				d.some(r, func(one Resource) bool { return t.extensions.doubts(one, d.at) })
		}) {
			doubted = append(doubted, PeerTrouble{p.id, "it still lists what was deleted, so it may have it built in"})
		}
	}
	return doubted
}

// choose chooses one of the capable peers, or says why none of them can get the request.
func (t *Table) choose(capable []*peer, r Request, tried []Attempt, now time.Time, pick func(n int) int) Decision {
	var open, avoided []*peer
	trouble := make([]PeerTrouble, 0, len(capable))
	for _, p := range capable {
		i := slices.IndexFunc(tried, func(a Attempt) bool { return a.Peer == p.id })
		switch {
		case i >= 0:
			trouble = append(trouble, PeerTrouble{p.id, cmp.Or(tried[i].Trouble, "it did not answer")})
		case p.address == "":
			trouble = append(trouble, PeerTrouble{p.id, "its address is not known"})
		case now.Before(p.ejected):
			avoided = append(avoided, p)
		default:
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		open = avoided // an ejected peer is better than no peer
	}
	unavailable := func(why Reason) Decision {
		for _, p := range open {
			trouble = append(trouble, PeerTrouble{p.id, "it was not tried"})
		}
		slices.SortFunc(trouble, func(a, b PeerTrouble) int { return cmp.Compare(a.ID, b.ID) })
		return Decision{Action: Unavailable, Reason: why, Peers: trouble}
	}
	attempts := max(1, t.policy.Routing.Attempts)
	switch {
	case len(tried) > 0 && tried[len(tried)-1].Outcome == Undecided && !r.Repeatable && attempts > 1:
		return unavailable(ReasonNotRepeatable)
	case len(tried) >= attempts:
		return unavailable(ReasonUnreachable)
	case len(open) == 0 && len(tried) == 0:
		return unavailable(ReasonUnresolved)
	case len(open) == 0:
		return unavailable(ReasonUnreachable)
	}
	chosen := open[0]
	if len(open) > 1 {
		chosen = open[pick(len(open))]
	}
	return Decision{Action: Forward, Reason: ReasonCapable, Peer: chosen.id, Address: chosen.address}
}

// decideByStorageVersions is the rule of 1.28 to 1.32: a server serves a resource if a
// StorageVersion object says that it can decode the resource. A resource without such an object is
// a custom resource or an aggregated API, which the local server serves.
func (t *Table) decideByStorageVersions(r Request, tried []Attempt, pick func(n int) int) Decision {
	servers := t.storage[schema.GroupVersionResource{Group: r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource}]
	switch {
	case r.Rerouted:
		return Decision{Action: ServeLocally, Reason: ReasonRerouted}
	case !t.synced:
		return Decision{Action: ServeLocally, Reason: ReasonUnsynced}
	case len(servers) == 0:
		return Decision{Action: NotFound, Reason: ReasonNobody}
	case slices.Contains(servers, t.self):
		return Decision{Action: ServeLocally, Reason: ReasonLocal}
	}
	var capable []*peer
	for _, id := range slices.Sorted(slices.Values(servers)) {
		p := &peer{id: id}
		if i, ok := t.find(id); ok {
			p = t.peers[i]
		}
		if t.policy.Quirks.AllMustResolve && len(tried) == 0 && p.address == "" {
			return Decision{Action: Unavailable, Reason: ReasonUnresolved, Peers: []PeerTrouble{{id, "its address is not known"}}}
		}
		capable = append(capable, p)
	}
	return t.choose(capable, r, tried, time.Time{}, pick)
}
