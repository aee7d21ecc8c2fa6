package proxy_test

import (
	"math/rand/v2"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// pool has the resources that servers may serve. The entries from extensionsFrom on are custom
// resources and aggregated APIs if a definition or an APIService exists. Any of these entries may
// also be built into a server.
var pool = []proxy.Resource{
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "pods", Subresource: "status"},
	{Version: "v1", Resource: "things"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "batch", Version: "v1", Resource: "jobs", Subresource: "status"},
	{Group: "batch", Version: "v1beta1", Resource: "jobs"},
	{Group: "batch", Version: "v1", Resource: "runs"},
	{Group: "new.k8s.io", Version: "v1", Resource: "gadgets"},
	{Group: "new.k8s.io", Version: "v1", Resource: "gadgets", Subresource: "scale"},
	{Group: "new.k8s.io", Version: "v1alpha1", Resource: "gadgets"},
	{Group: "old.k8s.io", Version: "v1", Resource: "relics"},
	{Group: "example.com", Version: "v1", Resource: "widgets"},
	{Group: "example.com", Version: "v2", Resource: "widgets"},
	{Group: "example.com", Version: "v1", Resource: "gizmos"},
	{Group: "metrics.example.com", Version: "v1", Resource: "nodes"},
	{Group: "metrics.example.com", Version: "v1beta1", Resource: "nodes"},
}

const extensionsFrom = 11

// documentOf makes the documents of the two roots from a choice of resources. turned reverses the
// groups, because servers of different versions list them differently.
func documentOf(resources []proxy.Resource, turned bool) [2]discovery.Groups {
	var documents [2]discovery.Groups
	for _, r := range resources {
		d := &documents[1]
		if r.Group == "" {
			d = &documents[0]
		}
		g := slices.IndexFunc(*d, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == r.Group })
		if g < 0 {
			g = len(*d)
			*d = append(*d, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.Group}})
		}
		group := &(*d)[g]
		v := slices.IndexFunc(group.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == r.Version })
		if v < 0 {
			v = len(group.Versions)
			group.Versions = append(group.Versions, versionOf(r.GroupVersion(), nil))
		}
		version := &group.Versions[v]
		i := slices.IndexFunc(version.Resources, func(l apidiscoveryv2.APIResourceDiscovery) bool { return l.Resource == r.Resource })
		if i < 0 {
			i = len(version.Resources)
			version.Resources = append(version.Resources, resourceOf(r.GroupVersion(), r.Resource))
		}
		if r.Subresource != "" {
			version.Resources[i].Subresources = append(version.Resources[i].Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: r.Subresource, ResponseKind: version.Resources[i].ResponseKind, Verbs: []string{"get", "update"},
			})
		}
	}
	if turned {
		slices.Reverse(documents[1])
	}
	return documents
}

// someOf makes the documents of a server that serves some of the resources in different ways. Only
// built-in resources are always listed and never stale.
func someOf(random *rand.Rand, all []proxy.Resource, builtin bool) [2]discovery.Groups {
	var chosen []proxy.Resource
	for _, r := range all {
		if !oneIn(random, 3) {
			chosen = append(chosen, r)
		}
	}
	documents := documentOf(chosen, oneIn(random, 4))
	for _, groups := range documents {
		for g := range groups {
			for v := range groups[g].Versions {
				version := &groups[g].Versions[v]
				if !builtin && oneIn(random, 6) {
					version.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
				}
				if !builtin && groups[g].Name != "" && oneIn(random, 12) {
					version.Resources = nil
				}
				for r := range version.Resources {
					if oneIn(random, 5) {
						version.Resources[r].Verbs = []string{"watch", "list"}
					}
				}
			}
			if oneIn(random, 8) {
				slices.Reverse(groups[g].Versions)
			}
		}
	}
	return documents
}
