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

// recorded is what a real kube-apiserver serves at /apis by itself, and a custom resource after everything else, as its priority puts it.
func recorded(t *testing.T, version string) discovery.Groups {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("discovery", "testdata", version+"-apis.json"))
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

// TestEveryServerReportsTheSame: the documents of servers of two real versions, with a custom resource, must merge to the same bytes at
// each of them, though each takes custom resources from itself.
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

// merged is the document of a server of one version beside one of another.
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
