package proxy

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

func custom(r Resource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// TestExtensionLifeCycle follows a CustomResourceDefinition under each extension policy. A peer's
// document lists the resource while the local server does not serve it.
func TestExtensionLifeCycle(t *testing.T) {
	widget2 := Resource{Group: "example.com", Version: "v2", Resource: "widgets"}
	sibling := Resource{Group: "example.com", Version: "v1", Resource: "builtins"} // built in, in the same group version
	base := append(peersLive("a"), localServes(jobs), Synced{})
	fetch := func(at time.Duration, apis ...Resource) Event {
		return Fetched{Results: []FetchResult{serves("a", "1", apis...)}, At: epoch.Add(at)}
	}
	exist := func(at time.Duration, list ...Resource) Event {
		e := defines(0, 0, list...)
		e.At, e.Created = epoch.Add(at), nil
		return e
	}
	tick := func(at time.Duration) Event { return Tick{At: epoch.Add(at)} }
	both := fetch(0, widget, widget2)
	for _, c := range []struct {
		name   string
		events []Event
		ask    Resource
		want   map[string]Action // by policy
	}{
		{"before any exists", []Event{both}, widget,
			map[string]Action{"upstream-1.34": Forward, "upstream-1.35": Forward, "upstream-1.37": Forward, "reference": Forward}},
		{"created: served here now or soon", []Event{both, exist(0, widget)}, widget,
			map[string]Action{"upstream-1.34": Forward, "upstream-1.35": NotFound, "upstream-1.37": NotFound, "reference": ServeLocally}},
		{"a built-in resource of the same group version", []Event{fetch(0, widget, sibling), exist(0, widget)}, sibling,
			map[string]Action{"upstream-1.35": NotFound, "upstream-1.37": NotFound, "reference": Forward}},
		{"deleted: the peer's document is older", []Event{both, exist(0, widget), exist(time.Minute)}, widget,
			map[string]Action{"upstream-1.34": Forward, "upstream-1.35": NotFound, "upstream-1.37": NotFound, "reference": NotFound}},
		{"deleted: the grace has ended, the document is still older", []Event{both, exist(0, widget), exist(time.Minute), tick(7 * time.Minute)}, widget,
			map[string]Action{"upstream-1.35": NotFound, "upstream-1.37": Forward, "reference": NotFound}},
		{"deleted: the grace has ended, fetched again", []Event{both, exist(0, widget), exist(time.Minute), tick(7 * time.Minute), fetch(8*time.Minute, widget, widget2)}, widget,
			map[string]Action{"upstream-1.35": Forward, "upstream-1.37": Forward, "reference": Forward}},
		{"deleted: a document fetched 1 s later does not count", []Event{both, exist(0, widget), exist(time.Minute), fetch(time.Minute+time.Second, widget)}, widget,
			map[string]Action{"upstream-1.37": NotFound, "reference": NotFound}},
		{"deleted: a document fetched 11 s later counts", []Event{both, exist(0, widget), exist(time.Minute), fetch(time.Minute+11*time.Second, widget)}, widget,
			map[string]Action{"upstream-1.37": NotFound, "reference": Forward}},
		{"version dropped", []Event{both, exist(0, widget, widget2), exist(time.Minute, widget2)}, widget,
			map[string]Action{"upstream-1.35": NotFound, "upstream-1.37": NotFound, "reference": NotFound}},
		{"version dropped: 1.35 excludes it for ever", []Event{both, exist(0, widget, widget2), exist(time.Minute, widget2), tick(time.Hour), fetch(2*time.Hour, widget, widget2)}, widget,
			map[string]Action{"upstream-1.35": NotFound, "upstream-1.37": Forward, "reference": Forward}},
		{"created again during the grace", []Event{both, exist(0, widget), exist(time.Minute), exist(2*time.Minute, widget), tick(time.Hour)}, widget,
			map[string]Action{"upstream-1.35": NotFound, "upstream-1.37": NotFound, "reference": ServeLocally}},
	} {
		for name, want := range c.want {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				policy, err := PresetNamed(name)
				if err != nil {
					t.Fatal(err)
				}
				got := table(policy, append(base[:len(base):len(base)], c.events...)...).Decide(request(c.ask), nil, epoch, first)
				if got.Action != want {
					t.Errorf("decision %+v, want action %d", got, want)
				}
			})
		}
	}
}

// A custom resource may have the group version of built-in resources. A server that has the group
// version built in does not serve the custom resource. A peer may serve it if it lacks the group
// version, or if it has that resource built in.
func TestACustomResourceInABuiltInGroupVersion(t *testing.T) {
	builtIn := Resource{Group: widget.Group, Version: widget.Version, Resource: "builtins"}
	at := func(d time.Duration, list ...Resource) Event {
		return defines(int(d/time.Second), int(d/time.Second), list...)
	}
	peer := Fetched{Results: []FetchResult{serves("a", "1", widget)}, At: epoch}
	for _, c := range []struct {
		name   string
		events []Event
		want   Action
		listed bool // the peer's document counts in discovery
	}{
		{"built in here, without the resource", []Event{localServes(builtIn), peer, at(0, widget)}, Forward, true},
		{"built in here, with the resource", []Event{localServes(builtIn, widget), peer, at(0, widget)}, ServeLocally, true},
		{"not built in here", []Event{localServes(jobs), peer, at(0, widget)}, ServeLocally, false},
		{"another custom resource here", []Event{localServes(gadgetOf(widget)), peer, at(0, widget, gadgetOf(widget))}, ServeLocally, false},
		{"built in here, deleted since", []Event{localServes(builtIn), peer, at(0, widget), at(time.Minute)}, NotFound, false},
		{"built in at the peer alone", []Event{localServes(jobs), Fetched{Results: []FetchResult{serves("a", "1", widget, builtIn)}, At: epoch}, at(0, widget), at(time.Minute)}, Forward, true},
		{"the peer listed it long before it was defined", []Event{localServes(jobs), peer, at(time.Minute, widget), at(2 * time.Minute)}, Forward, true},
		{"the peer listed it shortly before it was defined", []Event{localServes(jobs), peer, at(5*time.Second, widget), at(2 * time.Minute)}, NotFound, false},
		{"the peer that listed it has restarted", []Event{
			localServes(jobs), peer, at(time.Minute, widget), PeerAppeared{ID: "a", Incarnation: "2"},
			Fetched{Results: []FetchResult{serves("a", "2", widget)}, At: epoch.Add(90 * time.Second)}, at(2 * time.Minute),
		}, NotFound, false},
		{"built in here, of a custom resource's name", []Event{localServes(builtIn), peer, at(time.Minute, builtIn, widget)}, Forward, true},
		{"built in here, no server serves it", []Event{localServes(builtIn), at(0, widget)}, NotFound, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := append(peersLive("a"), Synced{}, Fetched{Results: []FetchResult{serves("a", "1", jobs)}, At: epoch})
			now := table(Reference(), append(events, c.events...)...)
			if got := now.Decide(request(widget), nil, epoch, first); got.Action != c.want {
				t.Errorf("decision %+v, want action %d", got, c.want)
			}
			listed := false
			for _, s := range now.Sources(RootGroups) {
				listed = listed || !s.Local && discovery.NewIndex(s.Groups).Resource(widget.Group, widget.Version, widget.Resource, "")
			}
			if listed != c.listed {
				t.Errorf("the peer's document counts: %v, want %v", listed, c.listed)
			}
		})
	}
}

// A custom resource without a subresource is not served in place of a built-in resource that has
// it.
func TestASubresourceThatOnlyTheBuiltInResourceHas(t *testing.T) {
	status := widget
	status.Subresource = "status"
	events := append(peersLive("a"), Synced{}, localServes(widget), Fetched{Results: []FetchResult{serves("a", "1", widget, status)}, At: epoch},
		Extensions{CustomResources: []schema.GroupVersionResource{custom(widget)}, At: epoch})
	now := table(Reference(), events...)
	if got := now.Decide(request(status), nil, epoch, first); got.Action != Forward {
		t.Errorf("the subresource: %+v, want forwarded to the peer that has it", got)
	}
	if got := now.Decide(request(widget), nil, epoch, first); got.Action != ServeLocally {
		t.Errorf("the resource: %+v, want served locally", got)
	}
	ghost := widget
	ghost.Subresource = "ghost"
	if got := now.Decide(request(ghost), nil, epoch, first); got.Action != NotFound {
		t.Errorf("a subresource that no server has: %+v, want not found", got)
	}
}

func gadgetOf(r Resource) Resource {
	r.Resource = "gadgets"
	return r
}

func TestAggregatedAPIOwnsItsGroupVersion(t *testing.T) {
	now := table(Reference(), append(peersLive("a"), localServes(jobs), Synced{},
		Fetched{Results: []FetchResult{serves("a", "1", widget)}, At: epoch},
		Extensions{Aggregated: []schema.GroupVersion{widget.GroupVersion()}, At: epoch})...)
	for _, r := range []Request{request(widget), {Kind: KindDiscovery, Resource: Resource{Group: widget.Group}}} {
		if got := now.Decide(r, nil, epoch, first); got.Action != ServeLocally {
			t.Errorf("%v: %+v, want served locally: its APIService names a Service, which the local server asks itself", r.Resource, got)
		}
	}
	then := now.Observe(Extensions{At: epoch.Add(time.Minute)})
	for _, r := range []Request{request(widget), {Kind: KindDiscovery, Resource: Resource{Group: widget.Group}}} {
		if got := then.Decide(r, nil, epoch, first); got.Action != NotFound {
			t.Errorf("%v: %+v, want not found: the APIService was deleted after the peer's document was learnt", r.Resource, got)
		}
	}
}

// A group or version is not routed to a peer if all that the peer lists of it has been deleted. If
// the peer lists something else of it, it still is.
func TestDiscoveryOfADeletedCustomResource(t *testing.T) {
	gears := Resource{Group: widget.Group, Version: widget.Version, Resource: "gears"}
	for name, c := range map[string]struct {
		listed []Resource
		want   Action
	}{
		"the deleted one alone":     {[]Resource{widget}, NotFound},
		"the deleted one and gears": {[]Resource{widget, gears}, Forward},
	} {
		then := table(Reference(), append(peersLive("a"), localServes(jobs), Synced{},
			Fetched{Results: []FetchResult{serves("a", "1", c.listed...)}, At: epoch},
			Extensions{CustomResources: []schema.GroupVersionResource{custom(widget)}, At: epoch}, Extensions{At: epoch.Add(time.Minute)})...)
		for _, r := range []Resource{{Group: widget.Group}, {Group: widget.Group, Version: widget.Version}} {
			if got := then.Decide(Request{Kind: KindDiscovery, Resource: r}, nil, epoch, first); got.Action != c.want {
				t.Errorf("%s: %v: %+v, want %v", name, r, got, c.want)
			}
		}
	}
}

// TestUnservedVersions: upstream also excludes versions that a definition lists but does not serve.
func TestUnservedVersions(t *testing.T) {
	events := append(peersLive("a"), localServes(jobs), Synced{},
		Fetched{Results: []FetchResult{serves("a", "1", widget)}, At: epoch},
		Extensions{Unserved: []schema.GroupVersionResource{custom(widget)}, At: epoch})
	if got := table(Upstream137(), events...).Decide(request(widget), nil, epoch, first); got.Action != NotFound {
		t.Errorf("upstream: %+v, want not found", got)
	}
	if got := table(Reference(), events...).Decide(request(widget), nil, epoch, first); got.Action != Forward {
		t.Errorf("reference: %+v, want forwarded to the peer that says it serves it", got)
	}
}

// TestGenerationFollowsKnowledge: a change of a document's sources changes the generation, with
// upstream's one exception.
func TestGenerationFollowsKnowledge(t *testing.T) {
	base := append(peersLive("a"), localServes(jobs), Synced{}, Fetched{Results: []FetchResult{serves("a", "1", gadget, widget)}, At: epoch})
	for _, c := range []struct {
		name   string
		policy Policy
		event  Event
		bumps  bool
	}{
		{"the local server's document", Reference(), localServes(jobs, gadget), true},
		{"another document of a peer", Reference(), Fetched{Results: []FetchResult{serves("a", "1", gadget)}, At: epoch}, true},
		{"a failed fetch", Reference(), Fetched{Results: []FetchResult{failedFetch("a")}, At: epoch}, false},
		{"a failed fetch, upstream 1.35", Upstream135(), Fetched{Results: []FetchResult{failedFetch("a")}, At: epoch}, true},
		{"a failed fetch of the last peer, upstream", Upstream137(), Fetched{Results: []FetchResult{failedFetch("a")}, At: epoch}, false},
		{"the peer leaves", Reference(), PeerGone{"a"}, true},
		{"the peer restarts: shown as before, and marked, until it has answered", Reference(), PeerAppeared{ID: "a", Incarnation: "2"}, true},
		{"a custom resource appears", Reference(), Extensions{CustomResources: []schema.GroupVersionResource{custom(widget)}, At: epoch}, true},
		{"an address", Reference(), PeerAddress{ID: "a", Address: "x:1"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := table(c.policy, base...)
			after := before.Observe(c.event)
			if got := before.DocumentGeneration() != after.DocumentGeneration(); got != c.bumps {
				t.Errorf("generation %d, then %d; want a change: %t", before.DocumentGeneration(), after.DocumentGeneration(), c.bumps)
			}
		})
	}
}

func TestObserveDoesNotChangeReceiver(t *testing.T) {
	for _, policy := range Presets() {
		before := table(policy, append(peersLive("a", "b"), localServes(jobs), Synced{},
			Fetched{Results: []FetchResult{serves("a", "1", gadget), serves("b", "1", gadget)}, At: epoch})...)
		decision := before.Decide(request(gadget), nil, epoch, first)
		peers := before.Peers()
		for _, e := range []Event{PeerGone{"a"}, PeerAppeared{ID: "a", Incarnation: "2"}, PeerAddress{ID: "a"}, PeerFailed{"a", epoch},
			Fetched{Results: []FetchResult{failedFetch("a")}, At: epoch},
			Extensions{CustomResources: []schema.GroupVersionResource{custom(gadget)}, At: epoch}} {
			before.Observe(e)
			if got := before.Decide(request(gadget), nil, epoch, first); got.Action != decision.Action || got.Peer != decision.Peer {
				t.Errorf("%s: after %T the old table decides %+v, before %+v", policy.Name, e, got, decision)
			}
		}
		for i, p := range before.Peers() {
			if p != peers[i] {
				t.Errorf("%s: the old table's peer is now %+v, was %+v", policy.Name, p, peers[i])
			}
		}
	}
}
