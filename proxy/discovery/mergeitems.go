package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/version"
)

// These are the merge functions of the levels. Each merges an item of the newest server with the
// items of the same name from older servers, and reports whether the result differs from the newest
// server's item.

func mergeGroup(group *apidiscoveryv2.APIGroupDiscovery,
	more []*apidiscoveryv2.APIGroupDiscovery) (apidiscoveryv2.APIGroupDiscovery, bool) {
	versions := func(g *apidiscoveryv2.APIGroupDiscovery) []apidiscoveryv2.APIVersionDiscovery { return g.Versions }
	merged := *group
	var changed bool
	merged.Versions, changed = mergeLists(listsOf(group, more, versions), versionLevel)
	return merged, changed
}

func mergeVersion(v *apidiscoveryv2.APIVersionDiscovery,
	more []*apidiscoveryv2.APIVersionDiscovery) (apidiscoveryv2.APIVersionDiscovery, bool) {
	resources := func(v *apidiscoveryv2.APIVersionDiscovery) []apidiscoveryv2.APIResourceDiscovery { return v.Resources }
	merged := *v
	var changed bool
	merged.Resources, changed = mergeLists(listsOf(v, more, resources), resourceLevel)
	for _, other := range more {
		if other.Freshness == apidiscoveryv2.DiscoveryFreshnessCurrent {
			merged.Freshness = other.Freshness
		}
	}
	return merged, changed || merged.Freshness != v.Freshness
}

func mergeResource(r *apidiscoveryv2.APIResourceDiscovery,
	more []*apidiscoveryv2.APIResourceDiscovery) (apidiscoveryv2.APIResourceDiscovery, bool) {
	type resource = apidiscoveryv2.APIResourceDiscovery
	verbs := func(r *resource) []string { return r.Verbs }
	subresources := func(r *resource) []apidiscoveryv2.APISubresourceDiscovery { return r.Subresources }
	merged := *r
	for _, other := range more {
		if len(merged.Verbs) == 0 && len(other.Verbs) > 0 {
			merged = *other // the newest that has verbs
		}
	}
	var verbsChanged, subresourcesChanged bool
	merged.Verbs, verbsChanged = mergeLists(listsOf(r, more, verbs), verbLevel)
	merged.Subresources, subresourcesChanged = mergeLists(listsOf(r, more, subresources), subresourceLevel)
	return merged, verbsChanged || subresourcesChanged // if merged is another server's, the verbs have changed
}

func mergeSubresource(s *apidiscoveryv2.APISubresourceDiscovery,
	more []*apidiscoveryv2.APISubresourceDiscovery) (apidiscoveryv2.APISubresourceDiscovery, bool) {
	verbs := func(s *apidiscoveryv2.APISubresourceDiscovery) []string { return s.Verbs }
	merged := *s
	var changed bool
	merged.Verbs, changed = mergeLists(listsOf(s, more, verbs), verbLevel)
	return merged, changed
}

// listsOf returns one list of each item, the newest item's first.
func listsOf[T, U any](item *T, more []*T, list func(*T) []U) [][]U {
	lists := append(make([][]U, 0, len(more)+1), list(item))
	for _, other := range more {
		lists = append(lists, list(other))
	}
	return lists
}

// ranks is the number of stability levels: generally available, beta, alpha, and names without a
// level.
const ranks = 4

// stability returns the level of a version name. In the API machinery's order of version names, v0,
// v0beta0 and v0alpha0 are the least names of their levels, so they separate the levels.
func stability(name string) int8 {
	for i, least := range [...]string{"v0", "v0beta0", "v0alpha0"} {
		if version.CompareKubeAwareVersionStrings(name, least) >= 0 {
			return int8(ranks - 1 - i)
		}
	}
	return 0
}

// versionRanks ranks versions by stability. With newest, the rank of a version is the highest
// stability of this version and the versions after it, because the newest server may prefer a less
// stable version.
func versionRanks(versions []apidiscoveryv2.APIVersionDiscovery, newest bool) []int8 {
	ranked := make([]int8, len(versions))
	for i := len(versions) - 1; i >= 0; i-- {
		ranked[i] = stability(versions[i].Version)
		if newest && i+1 < len(versions) {
			ranked[i] = max(ranked[i], ranked[i+1])
		}
	}
	return ranked
}
