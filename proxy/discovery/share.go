package discovery

import (
	"reflect"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// Share returns the groups with every list of resources that equals that of the same version in like replaced by that list
// itself. Servers of one version list the same, so whoever keeps the documents of many peers holds little more than one in memory
// if each is shared with the first, and [Merge] sees at a glance what is the same.
//
// Neither is modified. The result is like itself if they are equal, and groups itself if they have no list in common.
func Share(groups, like Groups) Groups {
	places := make(map[string]int, len(like))
	for i := range like {
		places[like[i].Name] = i
	}
	equal := len(groups) == len(like) && (groups == nil) == (like == nil)
	out, owned := groups, false
	for i := range groups {
		place, ok := places[groups[i].Name]
		if !ok {
			equal = false
			continue
		}
		known := &like[place]
		versions, same := shareVersions(groups[i].Versions, known.Versions)
		equal = equal && same && place == i && groups[i].TypeMeta == known.TypeMeta &&
			reflect.DeepEqual(groups[i].ObjectMeta, known.ObjectMeta)
		if sameBacking(versions, groups[i].Versions) {
			continue
		}
		if !owned {
			out, owned = slices.Clone(groups), true
		}
		out[i].Versions = versions
	}
	if equal {
		return like
	}
	return out
}

// shareVersions does the same for the versions of one group, and tells whether they are equal, which the result then is.
func shareVersions(versions, like []apidiscoveryv2.APIVersionDiscovery) (out []apidiscoveryv2.APIVersionDiscovery, equal bool) {
	equal = len(versions) == len(like) && (versions == nil) == (like == nil)
	out, owned := versions, false
	for i := range versions {
		place := slices.IndexFunc(like, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == versions[i].Version })
		if place < 0 || !equalResources(versions[i].Resources, like[place].Resources) {
			equal = false
			continue
		}
		equal = equal && place == i && versions[i].Freshness == like[place].Freshness
		if !owned {
			out, owned = slices.Clone(versions), true
		}
		out[i].Resources = like[place].Resources
	}
	if equal {
		return like, true
	}
	return out, false
}
