package proxy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// recorded is the document that a real kube-apiserver serves at /apis by itself. A custom resource
// is added at the end, because its priority puts it there.
func recorded(t *testing.T, version string) discovery.Groups {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "sim", "recorded", "documents", version+"-apis.json"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := discovery.Decode("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", body)
	if err != nil {
		t.Fatal(err)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == widget.Group })
	return append(list, groups(widget)...)
}

// TestEveryServerReportsTheSame: the documents of servers of two real versions, with a custom
// resource, must merge to the same bytes on each server. This must be true although each server
// takes custom resources from itself.
func TestEveryServerReportsTheSame(t *testing.T) {
	versions := []string{"v1.34.4", "v1.35.4", "v1.36.3", "v1.37.1"}
	for i, a := range versions {
		for _, b := range versions[i+1:] {
			t.Run(a+" and "+b, func(t *testing.T) {
				first, second := merged(t, a, b), merged(t, b, a)
				if first.ETag() != second.ETag() {
					t.Errorf("%s reports %v\n%s reports %v", a, names(first.Groups()), b, names(second.Groups()))
				}
			})
		}
	}
}

// merged is the merged document on a server of one version with one peer of another version.
func merged(t *testing.T, self, peer string) *discovery.Document {
	t.Helper()
	now := table(Reference(),
		PeerAppeared{ID: ServerID(peer), Incarnation: "1"}, PeerAddress{ID: ServerID(peer), Address: "x:1"},
		LocalFetched{Version: self, Roots: [roots]discovery.Groups{groups(pods), recorded(t, self)}, At: epoch},
		Fetched{At: epoch, Results: []FetchResult{{ID: ServerID(peer), Incarnation: "1", Version: peer,
			Roots: [roots]RootResult{{Groups: groups(pods)}, {Groups: recorded(t, peer)}}}}},
		Extensions{CustomResources: []schema.GroupVersionResource{custom(widget)}, At: epoch},
		Synced{})
	now.self = ServerID(self)
	return discovery.NewDocument("/apis", discovery.Merge(now.Sources(RootGroups)))
}

func names(list discovery.Groups) []string {
	all := make([]string, len(list))
	for i, g := range list {
		all[i] = g.Name
	}
	return all
}

// TestRestartLeavesDiscoveryAlone: while a new process has not answered yet, discovery must not
// report that the resources of the old process are gone.
func TestRestartLeavesDiscoveryAlone(t *testing.T) {
	lists := func(now *Table) bool {
		all := discovery.NewIndex(discovery.Merge(now.Sources(RootGroups)))
		return all.Resource(gadget.Group, gadget.Version, gadget.Resource, "")
	}
	before := table(Reference(), append(peersLive("a"), localServes(jobs), Synced{}, Fetched{Results: []FetchResult{serves("a", "1", gadget)}, At: epoch})...)
	restarted := before.Observe(PeerAppeared{ID: "a", Incarnation: "2"})
	if !lists(restarted) {
		t.Error("gone from discovery as soon as it has restarted")
	}
	if again := restarted.Observe(PeerAppeared{ID: "a", Incarnation: "3"}); !lists(again) {
		t.Error("gone from discovery when it has restarted twice")
	}
	if failed := restarted.Observe(Fetched{Results: []FetchResult{{ID: "a", Incarnation: "2", Roots: failedFetch("a").Roots}}, At: epoch}); !lists(failed) {
		t.Error("gone from discovery when the new process could not be asked")
	}
	if answered := restarted.Observe(Fetched{Results: []FetchResult{serves("a", "2", jobs)}, At: epoch}); lists(answered) {
		t.Error("still in discovery though the new process does not serve it")
	}
	if left := restarted.Observe(PeerGone{ID: "a"}); lists(left) {
		t.Error("still in discovery although the peer is gone")
	}
}

// TestRestartLeavesTheOrderOfDiscoveryAlone: documents that were made before and after the restart
// are in use at the same time, so they must be the same.
func TestRestartLeavesTheOrderOfDiscoveryAlone(t *testing.T) {
	order := func(now *Table) []string { return names(discovery.Merge(now.Sources(RootGroups))) }
	newest := serves("a", "1", gadget, jobs)
	newest.Version = "v1.37.1"
	older := localServes(jobs, gadget)
	older.Version = "v1.36.3"
	before := table(Reference(), append(peersLive("a"), older, Synced{}, Fetched{Results: []FetchResult{newest}, At: epoch})...)
	restarted := before.Observe(PeerAppeared{ID: "a", Incarnation: "2"})
	if before.DocumentGeneration() == restarted.DocumentGeneration() && !slices.Equal(order(before), order(restarted)) {
		t.Errorf("discovery lists %q, and %q as soon as the newest server has restarted", order(before), order(restarted))
	}
}
