package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Filter returns the groups without the resources that drop names, their subresources included. A version that has become empty
// goes as well, and so does its group then; what was empty before stays. About a version without resources, such as that of an
// aggregated API that never answered, drop is asked with an empty Resource.
//
// The groups are not modified. The result shares all that did not change with them, and is the same slice if nothing did.
func Filter(groups Groups, drop func(gvr schema.GroupVersionResource) bool) Groups {
	filtered, _ := filterList(groups, func(g *apidiscoveryv2.APIGroupDiscovery) fate {
		versions, changed := filterList(g.Versions, func(v *apidiscoveryv2.APIVersionDiscovery) fate {
			gvr := schema.GroupVersionResource{Group: g.Name, Version: v.Version}
			if len(v.Resources) == 0 {
				return droppedIf(drop(gvr))
			}
			resources, changed := filterList(v.Resources, func(r *apidiscoveryv2.APIResourceDiscovery) fate {
				gvr.Resource = r.Resource
				return droppedIf(drop(gvr))
			})
			if !changed {
				return kept
			}
			v.Resources = resources
			return droppedIf(len(resources) == 0) | altered
		})
		if !changed {
			return kept
		}
		g.Versions = versions
		return droppedIf(len(versions) == 0) | altered
	})
	return filtered
}

// fate is what becomes of an item.
type fate int

const (
	kept    fate = 0
	altered fate = 1 << 0
	dropped fate = 1 << 1
)

func droppedIf(drop bool) fate {
	if drop {
		return dropped
	}
	return kept
}

// filterList passes a copy of each item, which decide may alter, and copies the list when the first item is altered or dropped.
func filterList[T any](list []T, decide func(*T) fate) (out []T, changed bool) {
	out = list
	for i := range list {
		item := list[i]
		f := decide(&item)
		if f != kept && !changed {
			out, changed = append(make([]T, 0, len(list)), list[:i]...), true
		}
		if changed && f&dropped == 0 {
			out = append(out, item)
		}
	}
	return out, changed
}
