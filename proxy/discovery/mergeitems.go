package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/version"
)

func mergeGroup(group *apidiscoveryv2.APIGroupDiscovery, more []*apidiscoveryv2.APIGroupDiscovery) (apidiscoveryv2.APIGroupDiscovery, bool) {
	lists := make([][]apidiscoveryv2.APIVersionDiscovery, 0, len(more)+1)
	lists = append(lists, group.Versions)
	for _, g := range more {
		lists = append(lists, g.Versions)
	}
	merged := *group
	var changed bool
	merged.Versions, changed = mergeLists(lists, versionLevel)
	return merged, changed
}

func mergeVersion(v *apidiscoveryv2.APIVersionDiscovery, more []*apidiscoveryv2.APIVersionDiscovery) (apidiscoveryv2.APIVersionDiscovery, bool) {
	lists := make([][]apidiscoveryv2.APIResourceDiscovery, 0, len(more)+1)
	lists = append(lists, v.Resources)
	freshness := v.Freshness
	for _, other := range more {
		lists = append(lists, other.Resources)
		if other.Freshness == apidiscoveryv2.DiscoveryFreshnessCurrent {
			freshness = other.Freshness
		}
	}
	merged := *v
	var changed bool
	merged.Resources, changed = mergeLists(lists, resourceLevel)
	merged.Freshness = freshness
	return merged, changed || freshness != v.Freshness
}

func mergeResource(r *apidiscoveryv2.APIResourceDiscovery, more []*apidiscoveryv2.APIResourceDiscovery) (apidiscoveryv2.APIResourceDiscovery, bool) {
	verbs := make([][]string, 0, len(more)+1)
	verbs = append(verbs, r.Verbs)
	subresources := make([][]apidiscoveryv2.APISubresourceDiscovery, 0, len(more)+1)
	subresources = append(subresources, r.Subresources)
	described := r // the newest that has verbs
	for _, other := range more {
		verbs = append(verbs, other.Verbs)
		subresources = append(subresources, other.Subresources)
		if len(described.Verbs) == 0 && len(other.Verbs) > 0 {
			described = other
		}
	}
	merged := *described
	var verbsChanged, subresourcesChanged bool
	merged.Verbs, verbsChanged = mergeLists(verbs, verbLevel)
	merged.Subresources, subresourcesChanged = mergeLists(subresources, subresourceLevel)
	return merged, verbsChanged || subresourcesChanged // another description comes with its verbs
}

func mergeSubresource(s *apidiscoveryv2.APISubresourceDiscovery, more []*apidiscoveryv2.APISubresourceDiscovery) (apidiscoveryv2.APISubresourceDiscovery, bool) {
	verbs := make([][]string, 0, len(more)+1)
	verbs = append(verbs, s.Verbs)
	for _, other := range more {
		verbs = append(verbs, other.Verbs)
	}
	merged := *s
	var changed bool
	merged.Verbs, changed = mergeLists(verbs, verbLevel)
	return merged, changed
}

// ranks is how many degrees of stability there are: generally available, beta, alpha, and names that follow no convention.
const ranks = 4

// stability is the degree of a version name. The least name of each degree separates them in the API machinery's own order.
func stability(name string) int8 {
	for i, least := range [...]string{"v0", "v0beta0", "v0alpha0"} {
		if version.CompareKubeAwareVersionStrings(name, least) >= 0 {
			return int8(ranks - 1 - i)
		}
	}
	return 0
}

// versionRanks ranks versions by stability. The newest server's own order stands even if it prefers a less stable version: with
// newest, a version ranks with the most stable one behind it.
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
