package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
