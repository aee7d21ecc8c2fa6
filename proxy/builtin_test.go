package proxy

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// A server that listed a resource well before a custom resource of that name was defined has it
// built in. This is known of a process of a peer until that process ends, and of this server. A
// resource counts from when the first of the contents was learnt that all list it, and not from the
// last fetch.
func TestWhatResetsWhatIsBuiltIn(t *testing.T) {
	first := lists(gadget)
	learnt := slices.Concat([]Event{
		LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(gadget)}, At: epoch},
	}, peersLive("a"), []Event{
		Synced{},
		Fetched{At: epoch, Results: []FetchResult{of("a", "1", "v1.37.1", lists(pods), first)}},
	})
	unchanged := Fetched{At: seconds(9), Results: []FetchResult{of("a", "1", "v1.37.1", lists(pods), first)}} // after a 304
	defined := func(at int) Event { return defines(at, at, gadget) }
	again := func(incarnation string, at int, apis ...Resource) Event {
		return Fetched{At: seconds(at), Results: []FetchResult{of("a", incarnation, "v1.37.1", lists(pods), lists(apis...))}}
	}
	for name, c := range map[string]struct {
		events     []Event
		peer, here string
	}{
		"defined a margin later":                  {[]Event{defined(6)}, "gadgets", "gadgets"},
		"defined sooner":                          {[]Event{defined(5)}, "", ""},
		"fetched again meanwhile, and the same":   {[]Event{unchanged, defined(11)}, "gadgets", "gadgets"},
		"fetched again meanwhile, and more":       {[]Event{again("1", 9, gadget, jobs), defined(11)}, "gadgets", "gadgets"},
		"the same twice":                          {[]Event{again("1", 5, gadget, jobs), again("1", 9, gadget), defined(11)}, "gadgets", "gadgets"},
		"more, and defined sooner":                {[]Event{again("1", 3, gadget, jobs), defined(5)}, "", ""},
		"not listed for a moment":                 {[]Event{again("1", 5, jobs), again("1", 6, gadget, jobs), defined(11)}, "", "gadgets"},
		"listed from the second document on":      {[]Event{again("1", 5, jobs), again("1", 6, gadget, jobs), again("1", 8, gadget), defined(12)}, "gadgets", "gadgets"},
		"the same, and defined sooner":            {[]Event{again("1", 5, jobs), again("1", 6, gadget, jobs), again("1", 8, gadget), defined(11)}, "", "gadgets"},
		"more, and then the same for long":        {[]Event{again("1", 3, gadget, jobs), again("1", 5, gadget), again("1", 16, gadget), defined(17)}, "gadgets", "gadgets"},
		"not listed at the end":                   {[]Event{again("1", 9, jobs), defined(11)}, "", "gadgets"},
		"fetched again afterwards, and other":     {[]Event{defined(11), again("1", 12, gadget, jobs)}, "gadgets", "gadgets"},
		"deleted and defined again":               {[]Event{defined(11), Extensions{At: seconds(12)}, defined(13)}, "gadgets", "gadgets"},
		"the peer restarts and answers":           {[]Event{defined(11), PeerAppeared{"a", "2"}, again("2", 12, gadget)}, "", "gadgets"},
		"the peer leaves and another one appears": {[]Event{defined(11), PeerGone{"a"}, PeerAppeared{"a", "2"}}, "", "gadgets"},
		"the local server lists more": {[]Event{
			LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(gadget, jobs)}, At: seconds(5)}, defined(9)}, "gadgets", "gadgets"},
	} {
		t.Run(name, func(t *testing.T) {
			is := pieces(table(Reference(), slices.Concat(learnt, c.events)...))
			if is["a native"] != c.peer || is["native here"] != c.here {
				t.Errorf("built in at the peer: %q, want %q; here: %q, want %q", is["a native"], c.peer, is["native here"], c.here)
			}
		})
	}
}

// A definition shows what is built in only if servers listed the resource a margin before the
// definition was created and a margin before it was seen. The watch of definitions may be late, and
// the clock of the server that created the definition may be wrong.
func TestLateDefinitionsAndStrangeClocksShowNothingBuiltIn(t *testing.T) {
	for _, c := range []struct {
		created, seen int // seconds after both servers' documents were learnt
		want          string
	}{
		{6, 6, "gadgets"}, {5, 6, ""}, {6, 5, ""},
		{6, 60, "gadgets"}, {5, 60, ""}, {0, 60, ""}, {-60, 60, ""}, // the watch was held up
		{60, 6, "gadgets"}, {60, 5, ""}, {3600, 0, ""}, // a clock is ahead
		{-3600, 6, ""}, // a clock is behind
	} {
		is := pieces(table(Reference(), slices.Concat([]Event{
			LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(gadget)}, At: epoch},
		}, peersLive("a"), []Event{
			Synced{},
			Fetched{At: epoch, Results: []FetchResult{of("a", "1", "v1.37.1", lists(pods), lists(gadget))}},
			defines(c.created, c.seen, gadget),
		})...))
		if is["a native"] != c.want || is["native here"] != c.want {
			t.Errorf("created after %d s, seen after %d s: built in at the peer: %q, here: %q; want %q", c.created, c.seen, is["a native"], is["native here"], c.want)
		}
	}
	unknown := Extensions{CustomResources: []schema.GroupVersionResource{custom(gadget)}, At: seconds(60)}
	is := pieces(table(Reference(), append(peersLive("a"), Synced{},
		Fetched{At: epoch, Results: []FetchResult{of("a", "1", "v1.37.1", lists(pods), lists(gadget))}}, unknown)...))
	if is["a native"] != "" {
		t.Errorf("created at an unknown time: built in at the peer: %q, want nothing", is["a native"])
	}
}

// While the proxy is cut off from etcd, no definition reaches it, but peers serve new custom
// resources. When such a custom resource is deleted, the peers do not serve it any
// more either, even if their last documents list it.
func TestADeletedResourceThatWasDefinedDuringAnOutageIsNotFound(t *testing.T) {
	fetched := Fetched{At: seconds(30), Results: []FetchResult{of("a", "1", "v1.37.1", lists(pods), lists(gadget))}}
	now := table(Reference(), slices.Concat(peersLive("a"), []Event{
		localServes(jobs), Synced{}, fetched,
		defines(25, 60, gadget), Extensions{At: seconds(65)},
	})...)
	if got := now.Decide(request(gadget), nil, seconds(66), first); got.Action != NotFound {
		t.Errorf("decision %+v, want not found", got)
	}
}

// A server that starts may see its peers' documents before the definitions that were there all
// along. The order of the two proves nothing then.
func TestDefinitionsFromBeforeTheStartShowNothingBuiltIn(t *testing.T) {
	is := pieces(table(Reference(), slices.Concat([]Event{
		LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{groups(pods), groups(gadget)}, At: epoch},
	}, peersLive("a"), []Event{
		Fetched{At: epoch, Results: []FetchResult{of("a", "1", "v1.37.1", lists(pods), lists(gadget))}},
		defines(60, 60, gadget),
		Synced{},
	})...))
	if is["a native"] != "" || is["native here"] != "" {
		t.Errorf("built in at the peer: %q, here: %q; want nothing", is["a native"], is["native here"])
	}
}

// A custom resource is deleted that has the name of the only resource of a group version. A peer
// that lists it may have it built in, or may not have seen the deletion.
func TestADeletedResourceThatPeersStillListIsInDoubt(t *testing.T) {
	fetched := func(at int, named ...Resource) Event {
		return Fetched{At: seconds(at), Results: []FetchResult{of("a", "1", "v1.37.1", lists(pods), lists(named...))}}
	}
	start := func(p Policy) *Table {
		return table(p, slices.Concat(peersLive("a"), []Event{
			localServes(jobs), Synced{}, defines(25, 60, gadget), fetched(30, gadget), Extensions{At: seconds(65)},
		})...)
	}
	off := Reference()
	off.Knowledge.FailClosed = false
	version := request(Resource{Group: gadget.Group, Version: gadget.Version})
	version.Kind = KindDiscovery
	for name, c := range map[string]struct {
		table *Table
		r     Request
		want  Action
		why   Reason
	}{
		"nobody was asked since":            {start(Reference()), request(gadget), NotFound, ReasonNobody},
		"it was asked too soon":             {observe(start(Reference()), fetched(66, gadget)), request(gadget), NotFound, ReasonNobody},
		"it still lists the resource":       {observe(start(Reference()), fetched(67, gadget)), request(gadget), Unavailable, ReasonUnknown},
		"it still lists its group version":  {observe(start(Reference()), fetched(67, gadget)), version, Unavailable, ReasonUnknown},
		"it does not list it any more":      {observe(start(Reference()), fetched(67, jobs)), request(gadget), NotFound, ReasonNobody},
		"at last it does not":               {observe(start(Reference()), fetched(67, gadget), fetched(69, jobs)), request(gadget), NotFound, ReasonNobody},
		"it lists it in the next one, too":  {observe(start(Reference()), fetched(67, gadget), fetched(69, gadget)), request(gadget), Forward, ReasonCapable},
		"another resource of the version":   {observe(start(Reference()), fetched(67, gadget)), request(sibling(gadget)), NotFound, ReasonNobody},
		"it was defined again":              {observe(start(Reference()), defines(66, 60, gadget), fetched(68, gadget)), request(gadget), ServeLocally, ReasonLocal},
		"the peer has left":                 {observe(start(Reference()), fetched(67, gadget), PeerGone{ID: "a"}), request(gadget), NotFound, ReasonNobody},
		"another peer has said nothing yet": {observe(start(Reference()), PeerAppeared{ID: "b", Incarnation: "1"}), request(gadget), Unavailable, ReasonUnknown},
		"another one, while it is defined": {
			observe(start(Reference()), defines(66, 60, gadget), PeerAppeared{ID: "b", Incarnation: "1"}), request(gadget), ServeLocally, ReasonLocal,
		},
		"what is unknown counts as absent": {observe(start(off), fetched(67, gadget)), request(gadget), NotFound, ReasonNobody},
	} {
		if got := c.table.Decide(c.r, nil, seconds(70), first); got.Action != c.want || got.Reason != c.why {
			t.Errorf("%s: %+v, want %v, %s", name, got, c.want, c.why)
		}
	}
}

// sibling is another resource of the same group version.
func sibling(r Resource) Resource {
	r.Resource += "s"
	return r
}

func observe(t *Table, events ...Event) *Table {
	for _, e := range events {
		t = t.Observe(e)
	}
	return t
}
