package proxy

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// FuzzKnowledge turns bytes into events, and checks the invariants of the table after each event.
func FuzzKnowledge(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte("restart and partition"))
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 { // histories that every run of the tests uses
		tape := make([]byte, 200)
		for i := range tape {
			tape[i] = byte(random.Uint32())
		}
		f.Add(tape)
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		for _, policy := range Presets() {
			now := epoch
			table := NewTable(policy, "self")
			for step := 0; step+1 < min(len(tape), 200); step += 2 {
				now = now.Add(time.Duration(tape[step+1]) * time.Second)
				before := table
				table = table.Observe(eventFor(tape[step], tape[step+1], now))
				for _, r := range []Request{request(gadget), request(status), request(pods), {Kind: KindDiscovery, Resource: Resource{Group: gadget.Group}}} {
					checkDecision(t, table, r, now)
				}
				if before.DocumentGeneration() == table.DocumentGeneration() && !policy.Quirks.StaleWhenAlone {
					sameSources(t, before, table)
				}
			}
		}
	})
}

// eventFor draws each part of an event independently: the server, its process, address and version,
// and whether one or both of its documents have changed.
func eventFor(kind, detail byte, now time.Time) Event {
	rest := int(detail)
	draw := func(n int) int {
		drawn := rest % n
		rest /= n
		return drawn
	}
	id := ServerID([]string{"a", "b", "self"}[draw(3)])
	incarnation := []string{"1", "2"}[draw(2)]
	served := []Resource{jobs, status, gadget, widget}[:draw(5)]
	version := []string{"v1.36.3", "v1.37.1", "", "nonsense"}[draw(4)]
	switch kind % 18 {
	case 0:
		return PeerAppeared{id, incarnation}
	case 1:
		return PeerGone{id}
	case 2:
		return PeerAddress{ID: id, Address: []string{"", "x:1", "y:1", "x:2", "[::1]:6443"}[detail/6%5], Direct: detail/30%2 == 1}
	case 3:
		r := serves(id, incarnation, served...)
		r.Version = version
		return Fetched{Results: []FetchResult{r}, At: now}
	case 4:
		return Fetched{Results: []FetchResult{{ID: id, Incarnation: incarnation, Roots: [roots]RootResult{{Groups: groups(pods)}, {Failed: "no"}}}}, At: now}
	case 5:
		return Fetched{Results: []FetchResult{{ID: id, Incarnation: incarnation, Version: version, Roots: [roots]RootResult{{Failed: "no"}, {Groups: groups(served...)}}}}, At: now}
	case 6: // one round for two peers
		return Fetched{Results: []FetchResult{serves("a", incarnation, served...), serves("b", "1", gadget)}, At: now}
	case 7:
		return LocalFetched{Version: version, Roots: [roots]discovery.Groups{groups(pods), groups(served...)}, At: now}
	case 8:
		return LocalFetched{Version: "v1.36.3", Roots: [roots]discovery.Groups{nil, groups(served...)}, At: now}
	case 9, 10, 11:
		e := Extensions{At: now, Created: map[schema.GroupVersionResource]time.Time{}}
		for i, r := range served {
			switch (i + int(kind%18)) % 3 {
			case 0:
				e.CustomResources = append(e.CustomResources, custom(r))
				if ago := draw(4); ago < 3 { // else it is not known
					e.Created[custom(r)] = now.Add(time.Duration(1-ago) * 2 * trustedAfter)
				}
			case 1:
				e.Unserved = append(e.Unserved, custom(r))
			default:
				e.Aggregated = append(e.Aggregated, schema.GroupVersion{Group: r.Group, Version: r.Version})
			}
		}
		return e
	case 12:
		return Synced{}
	case 13:
		return PeerFailed{id, now}
	case 14:
		return PeerAnswered{id}
	case 15:
		return Tick{now}
	case 16:
		return LeaseWatch{Stalled: detail%2 == 0}
	default:
		return StorageVersions{Served: map[schema.GroupVersionResource][]ServerID{custom(gadget): {id}}}
	}
}

func checkDecision(t *testing.T, table *Table, r Request, now time.Time) {
	t.Helper()
	policy := table.Policy()
	var tried []Attempt
	for {
		d := table.Decide(r, tried, now, func(n int) int { return n - 1 })
		if d.Action != Forward {
			if d.Action == NotFound && policy.Knowledge.FailClosed {
				mayBeNotFound(t, table, r)
			}
			break
		}
		if d.Address == "" || d.Peer == table.Self() {
			t.Fatalf("%s: forwards to %+v", policy.Name, d)
		}
		for _, a := range tried {
			if a.Peer == d.Peer {
				t.Fatalf("%s: tries %s again", policy.Name, d.Peer)
			}
		}
		tried = append(tried, Attempt{Peer: d.Peer, Outcome: NotDelivered})
	}
	if len(tried) > max(1, policy.Routing.Attempts) {
		t.Fatalf("%s: %d attempts", policy.Name, len(tried))
	}
	r.Rerouted = true
	if d := table.Decide(r, nil, now, first); d.Action == Forward {
		t.Fatalf("%s: sends a rerouted request on: %+v", policy.Name, d)
	}
}

// mayBeNotFound checks that a 404 is not caused by something that this server failed to learn.
func mayBeNotFound(t *testing.T, table *Table, r Request) {
	t.Helper()
	if !table.Synced() || !table.LocalKnown() {
		t.Fatalf("not found before anything was known")
	}
	root := RootGroups
	if r.Resource.Group == "" {
		root = RootCore
	}
	if table.extensions.exclude(r.Resource, time.Time{}) {
		return // a custom resource or aggregated API: no peer is needed to know whether it exists
	}
	for _, p := range table.Peers() {
		if p.Live && p.Learned[root].IsZero() {
			t.Fatalf("not found, although the resources of %s are unknown", p.ID)
		}
	}
}

func sameSources(t *testing.T, a, b *Table) {
	t.Helper()
	for root := range roots {
		x, y := a.Sources(root), b.Sources(root)
		if len(x) != len(y) {
			t.Fatalf("%s: %d sources, then %d, in one generation", a.Policy().Name, len(x), len(y))
		}
		for i := range x {
			if x[i].Server != y[i].Server || x[i].Version != y[i].Version || !discovery.Same(x[i].Groups, y[i].Groups) && !cmp.Equal(x[i].Groups, y[i].Groups, cmpopts.EquateEmpty()) {
				t.Fatalf("%s: source %d was %+v and is %+v in one generation", a.Policy().Name, i, x[i], y[i])
			}
		}
	}
}
