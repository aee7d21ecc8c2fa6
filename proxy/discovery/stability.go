package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/version"
)

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
