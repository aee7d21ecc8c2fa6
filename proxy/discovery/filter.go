package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Filter returns the groups without the resources that drop selects, and without the subresources
// of these resources. It also removes versions and groups that become empty, but not those that
// were empty before. For a version without resources, drop is called with an empty Resource. An
// example is the version of an aggregated API that never answered.
//
// Filter does not modify the groups. The result shares with them everything that did not change. If
// nothing changed, the result is the same slice.
func Filter(groups Groups, drop func(gvr schema.GroupVersionResource) bool) Groups {
	filtered, _ := filterList(groups, func(g *apidiscoveryv2.APIGroupDiscovery) (keep, changed bool) {
		g.Versions, changed = filterList(g.Versions, func(v *apidiscoveryv2.APIVersionDiscovery) (keep, changed bool) {
			gvr := schema.GroupVersionResource{Group: g.Name, Version: v.Version}
			if len(v.Resources) == 0 {
				return !drop(gvr), false
			}
			v.Resources, changed = filterList(v.Resources, func(r *apidiscoveryv2.APIResourceDiscovery) (keep, changed bool) {
				gvr.Resource = r.Resource
				return !drop(gvr), false
			})
			return len(v.Resources) > 0, changed
		})
		return len(g.Versions) > 0 || !changed, changed
	})
	return filtered
}

// filterList calls decide with a copy of each item. decide may change this copy. The list itself is
// copied when the first item is changed or dropped.
func filterList[T any](list []T, decide func(*T) (keep, changed bool)) (out []T, changed bool) {
	out = list
	for i := range list {
		item := list[i]
		keep, itemChanged := decide(&item)
		if !changed && (itemChanged || !keep) {
			out, changed = append(make([]T, 0, len(list)), list[:i]...), true
		}
		if changed && keep {
			out = append(out, item)
		}
	}
	return out, changed
}
