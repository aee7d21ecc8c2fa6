package discovery

import (
	"reflect"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Share returns the groups with shared lists: a list of resources that equals the list of the same
// version in like is replaced by the list in like. Servers of one version list the same. So if the
// documents of many peers are each shared with the first, they need little more memory than one
// document, and [Merge] is fast.
//
// Share modifies neither argument. If groups and like are equal, the result is like. If they have
// no list in common, the result is groups.
func Share(groups, like Groups) Groups {
	shared, _ := shareList(groups, like, groupLevel.key, func(g, known *apidiscoveryv2.APIGroupDiscovery) (changed, equal bool) {
		versions, equal := shareList(g.Versions, known.Versions, versionLevel.key, shareVersion)
		changed = !sameBacking(versions, g.Versions)
		g.Versions = versions
		return changed, equal && g.TypeMeta == known.TypeMeta && reflect.DeepEqual(g.ObjectMeta, known.ObjectMeta)
	})
	return shared
}

func shareVersion(v, known *apidiscoveryv2.APIVersionDiscovery) (changed, equal bool) {
	if !equalItems(v.Resources, known.Resources, equalResource) {
		return false, false
	}
	v.Resources = known.Resources
	return true, v.Freshness == known.Freshness
}

// shareList calls share with a copy of each item and the item of the same name in like. share may
// change the copy. shareList returns like if the lists are equal.
func shareList[T any](list, like []T, key func(*T) string, share func(item, known *T) (changed, equal bool)) (out []T, equal bool) {
	places := make(map[string]int, len(like))
	for i := range like {
		places[key(&like[i])] = i
	}
	equal = len(list) == len(like) && (list == nil) == (like == nil)
	out, owned := list, false
	for i := range list {
		item := list[i]
		place, ok := places[key(&item)]
		if !ok {
			equal = false
			continue
		}
		changed, same := share(&item, &like[place])
		equal = equal && same && place == i
		if changed && !owned {
			out, owned = slices.Clone(list), true
		}
		if changed {
			out[i] = item
		}
	}
	if equal {
		return like, true
	}
	return out, false
}

// equalResource is a fast reflect.DeepEqual, because a merge compares every resource of every
// server. Like reflect.DeepEqual, it distinguishes a nil list from an empty one, because they are
// encoded differently.
func equalResource(a, b *apidiscoveryv2.APIResourceDiscovery) bool {
	return a.Resource == b.Resource &&
		a.Scope == b.Scope &&
		a.SingularResource == b.SingularResource &&
		equalKind(a.ResponseKind, b.ResponseKind) &&
		equalList(a.Verbs, b.Verbs) &&
		equalList(a.ShortNames, b.ShortNames) &&
		equalList(a.Categories, b.Categories) &&
		equalItems(a.Subresources, b.Subresources, equalSubresource)
}

func equalSubresource(a, b *apidiscoveryv2.APISubresourceDiscovery) bool {
	return a.Subresource == b.Subresource &&
		equalKind(a.ResponseKind, b.ResponseKind) &&
		equalList(a.AcceptedTypes, b.AcceptedTypes) &&
		equalList(a.Verbs, b.Verbs)
}

func equalItems[T any](a, b []T, equal func(a, b *T) bool) bool {
	if (a == nil) != (b == nil) || len(a) != len(b) {
		return false
	}
	if sameBacking(a, b) {
		return true
	}
	for i := range a {
		if !equal(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func equalKind(a, b *metav1.GroupVersionKind) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func equalList[T comparable](a, b []T) bool {
	return (a == nil) == (b == nil) && (sameBacking(a, b) || slices.Equal(a, b))
}
