package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// equalResource is reflect.DeepEqual for resources, without its cost: a merge compares every resource of every server. A nil
// list differs from an empty one, as there, since they are encoded differently.
func equalResource(a, b *apidiscoveryv2.APIResourceDiscovery) bool {
	return a.Resource == b.Resource &&
		a.Scope == b.Scope &&
		a.SingularResource == b.SingularResource &&
		equalKind(a.ResponseKind, b.ResponseKind) &&
		equalList(a.Verbs, b.Verbs) &&
		equalList(a.ShortNames, b.ShortNames) &&
		equalList(a.Categories, b.Categories) &&
		equalSubresources(a.Subresources, b.Subresources)
}

func equalResources(a, b []apidiscoveryv2.APIResourceDiscovery) bool {
	return equalItems(a, b, equalResource)
}

func equalSubresources(a, b []apidiscoveryv2.APISubresourceDiscovery) bool {
	return equalItems(a, b, equalSubresource)
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

func equalSubresource(a, b *apidiscoveryv2.APISubresourceDiscovery) bool {
	return a.Subresource == b.Subresource &&
		equalKind(a.ResponseKind, b.ResponseKind) &&
		equalList(a.AcceptedTypes, b.AcceptedTypes) &&
		equalList(a.Verbs, b.Verbs)
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
