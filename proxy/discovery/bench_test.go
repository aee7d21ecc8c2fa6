package discovery

import (
	"encoding/json"
	"fmt"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
)

// benchmarked are the sizes of the benchmarks.
var benchmarked = []struct{ peers, resources int }{{3, 100}, {3, 5000}, {50, 100}, {50, 5000}}

type shape string

const (
	identical shape = "identical" // all servers list the same
	own       shape = "own"       // each server also has a few resources that no other server has
	shuffled  shape = "shuffled"  // each server has its own, and the lists are in different orders
)

// size returns a document with this number of typical resources: 25 in a version, two versions in a
// group.
func size(resources int, variant int, s shape) Groups {
	var groups Groups
	for n := 0; n < resources; {
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("group-%d.example.com", n)}}
		for _, name := range []string{"v1", "v1beta1"} {
			version := apidiscoveryv2.APIVersionDiscovery{Version: name, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for i := 0; i < 25 && n < resources; i, n = i+1, n+1 {
				version.Resources = append(version.Resources, sizedResource(fmt.Sprintf("resource-%d", n)))
			}
			if n%1000 == 50 && s != identical {
				version.Resources = append(version.Resources, sizedResource(fmt.Sprintf("own-%d", variant)))
			}
			if r := newRandom(uint64(variant)); s == shuffled {
				r.Shuffle(len(version.Resources), func(i, j int) {
					version.Resources[i], version.Resources[j] = version.Resources[j], version.Resources[i]
				})
			}
			group.Versions = append(group.Versions, version)
		}
		groups = append(groups, group)
	}
	if r := newRandom(uint64(variant)); s == shuffled {
		r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	}
	return groups
}

func sizedResource(name string) apidiscoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Kind: "Kind-" + name}
	return apidiscoveryv2.APIResourceDiscovery{
		Resource: name, Scope: apidiscoveryv2.ScopeNamespace, SingularResource: "one-" + name, ResponseKind: kind,
		Verbs:        []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		Subresources: []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "status", ResponseKind: kind, Verbs: []string{"get", "patch", "update"}}},
	}
}

// servers makes sources that share no memory, because each is decoded from its own bytes.
func servers(b testing.TB, peers, resources int, s shape) []Source {
	b.Helper()
	sources := make([]Source, 0, peers+1)
	for i := range peers + 1 {
		body, err := json.Marshal(apidiscoveryv2.APIGroupDiscoveryList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}, Items: size(resources, i, s),
		})
		if err != nil {
			b.Fatal(err)
		}
		groups, err := Decode("", body)
		if err != nil {
			b.Fatal(err)
		}
		sources = append(sources, Source{Server: fmt.Sprintf("apiserver-%02d", i), Version: "v1.37.1", Local: i == 0, Groups: groups})
	}
	return sources
}

// BenchmarkMerge compares our merge with upstream's on the same sources, in one run:
//
//	go test ./proxy/discovery -run '^$' -bench Merge
func BenchmarkMerge(b *testing.B) {
	for _, s := range []shape{own, identical, shuffled} {
		for _, c := range benchmarked {
			var sources []Source
			var local Groups
			peers := map[string]Groups{}
			prepare := func(b *testing.B) {
				if sources == nil {
					sources = servers(b, c.peers, c.resources, s)
					local = sources[0].Groups
					for _, source := range sources[1:] {
						peers[source.Server] = source.Groups
					}
				}
				b.ReportAllocs()
			}
			name := fmt.Sprintf("%s/peers=%d/resources=%d/", s, c.peers, c.resources)
			b.Run(name+"reference", func(b *testing.B) {
				prepare(b)
				for b.Loop() {
					Merge(sources)
				}
			})
			b.Run(name+"reference-shared", func(b *testing.B) {
				prepare(b)
				shared := append([]Source(nil), sources...)
				for i := range shared {
					shared[i].Groups = Share(shared[i].Groups, sources[0].Groups)
				}
				for b.Loop() {
					Merge(shared)
				}
			})
			b.Run(name+"consensus", func(b *testing.B) {
				prepare(b)
				for b.Loop() {
					MergeConsensus(sources)
				}
			})
			b.Run(name+"upstream", func(b *testing.B) {
				prepare(b)
				for b.Loop() {
					aggregated.TestMergeResources(sources[0].Server, local, peers)
				}
			})
		}
	}
}
