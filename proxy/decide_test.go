package proxy

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// groups makes a document of "group/version resource" and "group/version resource/subresource"
// entries, in order.
func groups(entries ...Resource) discovery.Groups {
	var list discovery.Groups
	for _, e := range entries {
		if len(list) == 0 || list[len(list)-1].Name != e.Group {
			list = append(list, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: e.Group}})
		}
		g := &list[len(list)-1]
		if len(g.Versions) == 0 || g.Versions[len(g.Versions)-1].Version != e.Version {
			g.Versions = append(g.Versions, apidiscoveryv2.APIVersionDiscovery{Version: e.Version})
		}
		v := &g.Versions[len(g.Versions)-1]
		if len(v.Resources) == 0 || v.Resources[len(v.Resources)-1].Resource != e.Resource {
			v.Resources = append(v.Resources, apidiscoveryv2.APIResourceDiscovery{Resource: e.Resource})
		}
		if e.Subresource != "" {
			r := &v.Resources[len(v.Resources)-1]
			r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: e.Subresource})
		}
	}
	return list
}

var (
	pods   = Resource{Version: "v1", Resource: "pods"}
	jobs   = Resource{Group: "batch", Version: "v1", Resource: "jobs"}
	status = Resource{Group: "batch", Version: "v1", Resource: "jobs", Subresource: "status"}
	gadget = Resource{Group: "new.k8s.io", Version: "v1", Resource: "gadgets"}
	widget = Resource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

func serves(id ServerID, incarnation string, apis ...Resource) FetchResult {
	return FetchResult{ID: id, Incarnation: incarnation, Roots: [roots]RootResult{{Groups: groups(pods)}, {Groups: groups(apis...)}}}
}

func localServes(apis ...Resource) LocalFetched {
	return LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(apis...)}, At: epoch}
}

// table makes a table that has observed the events one after the other.
func table(p Policy, events ...Event) *Table {
	t := NewTable(p, "self")
	for _, e := range events {
		t = t.Observe(e)
	}
	return t
}

// peersLive makes the events after which each of the named peers is live and has the address
// "<id>:6443".
func peersLive(ids ...ServerID) []Event {
	var events []Event
	for _, id := range ids {
		events = append(events, PeerAppeared{ID: id, Incarnation: "1"}, PeerAddress{ID: id, Address: string(id) + ":6443"})
	}
	return events
}

func request(r Resource) Request { return Request{Kind: KindResource, Resource: r, Repeatable: true} }

func first(int) int { return 0 }

func TestDecide(t *testing.T) {
	// Most cases begin with this knowledge: jobs are served here, gadgets by a and b.
	known := append(peersLive("a", "b"), localServes(jobs), Synced{},
		Fetched{Results: []FetchResult{serves("a", "1", jobs, gadget), serves("b", "1", jobs, gadget)}, At: epoch})
	known = slices.Clip(known) // cases append to it
	reference := Reference()
	for _, c := range []struct {
		name    string
		policy  Policy
		events  []Event
		request Request
		tried   []Attempt
		now     time.Duration // after epoch
		want    Decision
	}{
		{name: "health checks stay", policy: reference, events: known, request: Request{}, want: Decision{Action: ServeLocally, Reason: ReasonNotRouted}},
		{name: "local first", policy: reference, events: known, request: request(jobs), want: Decision{Action: ServeLocally, Reason: ReasonLocal}},
		{name: "else a capable peer", policy: reference, events: known, request: request(gadget), want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "nobody serves it", policy: reference, events: known, request: request(widget), want: Decision{Action: NotFound, Reason: ReasonNobody}},
		{name: "failover", policy: reference, events: known, request: request(gadget), tried: []Attempt{{Peer: "a", Outcome: NotDelivered}},
			want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "b", Address: "b:6443"}},
		{name: "all tried", policy: reference, events: known, request: request(gadget),
			tried: []Attempt{{Peer: "b", Outcome: NotDelivered, Trouble: "it refused the connection"}, {Peer: "a", Outcome: Undecided}},
			want: Decision{Action: Unavailable, Reason: ReasonUnreachable,
				Peers: []PeerTrouble{{"a", "it did not answer"}, {"b", "it refused the connection"}}}},
		{name: "perhaps carried out, not repeatable", policy: reference, events: known, request: Request{Kind: KindResource, Resource: gadget},
			tried: []Attempt{{Peer: "a", Outcome: Undecided}},
			want: Decision{Action: Unavailable, Reason: ReasonNotRepeatable,
				Peers: []PeerTrouble{{"a", "it did not answer"}, {"b", "it was not tried"}}}},
		{name: "certainly not delivered, not repeatable", policy: reference, events: known, request: Request{Kind: KindResource, Resource: gadget},
			tried: []Attempt{{Peer: "a", Outcome: NotDelivered}}, want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "b", Address: "b:6443"}},
		{name: "upstream does not fail over", policy: Upstream137(), events: known, request: request(gadget), tried: []Attempt{{Peer: "a", Outcome: NotDelivered, Trouble: "x"}},
			want: Decision{Action: Unavailable, Reason: ReasonUnreachable, Peers: []PeerTrouble{{"a", "x"}, {"b", "it was not tried"}}}},
		{name: "an ejected peer is avoided", policy: reference, events: append(known, PeerFailed{"a", epoch}), request: request(gadget), now: time.Second,
			want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "b", Address: "b:6443"}},
		{name: "until its time is over", policy: reference, events: append(known, PeerFailed{"a", epoch}), request: request(gadget), now: 5 * time.Second,
			want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "or it has answered", policy: reference, events: append(known, PeerFailed{"a", epoch}, PeerAnswered{"a"}), request: request(gadget), now: time.Second,
			want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "the last peer is never given up", policy: reference, events: append(known, PeerFailed{"a", epoch}, PeerFailed{"b", epoch}), request: request(gadget), now: time.Second,
			want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "no address known", policy: reference, events: append(known, PeerAddress{ID: "a"}, PeerAddress{ID: "b"}), request: request(gadget),
			want: Decision{Action: Unavailable, Reason: ReasonUnresolved, Peers: []PeerTrouble{{"a", "its address is not known"}, {"b", "its address is not known"}}}},
		{name: "one hop: served here", policy: reference, events: known, request: Request{Kind: KindResource, Resource: jobs, Rerouted: true},
			want: Decision{Action: ServeLocally, Reason: ReasonRerouted}},
		{name: "one hop: not served here", policy: reference, events: known, request: Request{Kind: KindResource, Resource: gadget, Rerouted: true},
			want: Decision{Action: Unavailable, Reason: ReasonRerouted}},
		{name: "one hop: upstream's local server says 404", policy: Upstream137(), events: known, request: Request{Kind: KindResource, Resource: gadget, Rerouted: true},
			want: Decision{Action: ServeLocally, Reason: ReasonRerouted}},
		{name: "a subresource that only peers know", policy: reference, request: request(status),
			events: append(known, Fetched{Results: []FetchResult{serves("a", "1", jobs, status)}, At: epoch}),
			want:   Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "upstream ignores subresources", policy: Upstream137(), request: request(status),
			events: append(known, Fetched{Results: []FetchResult{serves("a", "1", jobs, status)}, At: epoch}),
			want:   Decision{Action: ServeLocally, Reason: ReasonLocal}},
		{name: "discovery of a group that only peers know", policy: reference, events: known, request: Request{Kind: KindDiscovery, Resource: Resource{Group: "new.k8s.io"}},
			want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "of an unknown version", policy: reference, events: known, request: Request{Kind: KindDiscovery, Resource: Resource{Group: "new.k8s.io", Version: "v2"}},
			want: Decision{Action: NotFound, Reason: ReasonNobody}},
		{name: "upstream never routes discovery", policy: Upstream137(), events: known, request: Request{Kind: KindDiscovery, Resource: Resource{Group: "new.k8s.io"}},
			want: Decision{Action: ServeLocally, Reason: ReasonNotRouted}},
		{name: "nothing known yet", policy: reference, request: request(gadget), want: Decision{Action: Unavailable, Reason: ReasonUnsynced}},
		{name: "upstream before it has synced", policy: Upstream137(), request: request(gadget), want: Decision{Action: ServeLocally, Reason: ReasonUnsynced}},
		{name: "before the first sync, local resources are served", policy: reference, events: []Event{localServes(jobs)}, request: request(jobs),
			want: Decision{Action: ServeLocally, Reason: ReasonLocal}},
		{name: "a peer that has not said what it serves", policy: reference, request: request(gadget),
			events: append(peersLive("a"), localServes(jobs), Synced{}),
			want:   Decision{Action: Unavailable, Reason: ReasonUnknown, Peers: []PeerTrouble{{"a", "it has not yet said what it serves"}}}},
		{name: "upstream takes silence for absence", policy: Upstream137(), request: request(gadget),
			events: append(peersLive("a"), localServes(jobs), Synced{}), want: Decision{Action: NotFound, Reason: ReasonNobody}},
		{name: "an unreachable peer is still known to serve", policy: reference, request: request(gadget),
			events: append(known, Fetched{Results: []FetchResult{failedFetch("a"), failedFetch("b")}, At: epoch}),
			want:   Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "upstream forgets it: the false 404", policy: Upstream137(), request: request(gadget),
			events: append(known, Fetched{Results: []FetchResult{failedFetch("a"), failedFetch("b")}, At: epoch}),
			want:   Decision{Action: NotFound, Reason: ReasonNobody}},
		{name: "the core group's document is enough for the core group", policy: reference, request: request(Resource{Version: "v1", Resource: "bindings"}),
			events: append(peersLive("a"), localServes(jobs), Synced{}, Fetched{Results: []FetchResult{{ID: "a", Incarnation: "1",
				Roots: [roots]RootResult{{Groups: groups(pods)}, {Failed: "time out"}}}}, At: epoch}),
			want: Decision{Action: NotFound, Reason: ReasonNobody}},
		{name: "and not for others", policy: reference, request: request(gadget),
			events: append(peersLive("a"), localServes(jobs), Synced{}, Fetched{Results: []FetchResult{{ID: "a", Incarnation: "1",
				Roots: [roots]RootResult{{Groups: groups(pods)}, {Failed: "time out"}}}}, At: epoch}),
			want: Decision{Action: Unavailable, Reason: ReasonUnknown, Peers: []PeerTrouble{{"a", "time out"}}}},
		{name: "a new process has not said what it serves", policy: reference, request: request(gadget),
			events: append(known, PeerGone{"b"}, PeerAppeared{ID: "a", Incarnation: "2"}),
			want:   Decision{Action: Unavailable, Reason: ReasonUnknown, Peers: []PeerTrouble{{"a", "it has not yet said what it serves"}}}},
		{name: "an answer of the old process does not count", policy: reference, request: request(gadget),
			events: append(known, PeerGone{"b"}, PeerAppeared{ID: "a", Incarnation: "2"}, Fetched{Results: []FetchResult{serves("a", "1", gadget)}, At: epoch}),
			want:   Decision{Action: Unavailable, Reason: ReasonUnknown, Peers: []PeerTrouble{{"a", "it has not yet said what it serves"}}}},
		{name: "the lease watch has stalled: there may be a new peer", policy: reference, events: append(known, LeaseWatch{true}), request: request(widget),
			want: Decision{Action: Unavailable, Reason: ReasonWatchStalled}},
		{name: "the lease watch has stalled: what is known is still known", policy: reference, events: append(known, LeaseWatch{true}), request: request(gadget),
			want: Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{name: "the lease watch has resumed", policy: reference, events: append(known, LeaseWatch{true}, LeaseWatch{false}), request: request(widget),
			want: Decision{Action: NotFound, Reason: ReasonNobody}},
		{name: "all peers are gone", policy: reference, events: append(known, PeerGone{"a"}, PeerGone{"b"}), request: request(gadget),
			want: Decision{Action: NotFound, Reason: ReasonNobody}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := table(c.policy, c.events...).Decide(c.request, c.tried, epoch.Add(c.now), first)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func failedFetch(id ServerID) FetchResult {
	return FetchResult{ID: id, Incarnation: "1", Roots: [roots]RootResult{{Failed: "no connection"}, {Failed: "no connection"}}}
}

func TestDecideByStorageVersions(t *testing.T) {
	events := append(peersLive("a"), Synced{}, StorageVersions{Served: map[schema.GroupVersionResource][]ServerID{
		custom(jobs): {"self", "a"}, custom(gadget): {"a"}, custom(pods): {"a", "unheard-of"}, custom(widget): {"unheard-of"},
	}})
	for _, c := range []struct {
		name    string
		request Request
		want    Decision
	}{
		{"served here", request(jobs), Decision{Action: ServeLocally, Reason: ReasonLocal}},
		{"served by a peer", request(gadget), Decision{Action: Forward, Reason: ReasonCapable, Peer: "a", Address: "a:6443"}},
		{"one address of two is unknown", request(pods), Decision{Action: Unavailable, Reason: ReasonUnresolved, Peers: []PeerTrouble{{"unheard-of", "its address is not known"}}}},
		{"custom resources have no StorageVersion", request(Resource{Group: "x", Version: "v1", Resource: "y"}), Decision{Action: NotFound, Reason: ReasonNobody}},
		{"rerouted", Request{Kind: KindResource, Resource: gadget, Rerouted: true}, Decision{Action: ServeLocally, Reason: ReasonRerouted}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := table(Alpha128(), events...).Decide(c.request, nil, epoch, first)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
	if got := table(Alpha128(), events[:2]...).Decide(request(gadget), nil, epoch, first); got.Reason != ReasonUnsynced {
		t.Errorf("before the informer has synced: %+v, want served locally", got)
	}
}
