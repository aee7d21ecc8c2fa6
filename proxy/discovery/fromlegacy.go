package discovery

import (
	"fmt"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FromLegacy makes groups of what a server without aggregated discovery answers: its groups (/apis, or [LegacyCore] for /api), and
// the resource lists of their versions (/apis/<group>/<version>, /api/v1), in any order.
//
// The preferred version of a group comes first. A version whose list is missing is Stale and has no resources, as it would be in an
// aggregated document (an aggregated API that cannot be asked); the others are Current. "pods/status" becomes a subresource of pods,
// which, if not listed itself, is added without kind and verbs. It is an error if a list is of no version of a group, or there twice, or has a
// resource without a name. The inputs are not modified, but the result shares lists of strings with them.
func FromLegacy(groups []metav1.APIGroup, lists []*metav1.APIResourceList) (Groups, error) {
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		if list == nil {
			continue
		}
		if _, ok := byVersion[list.GroupVersion]; ok {
			return nil, fmt.Errorf("read legacy discovery: two resource lists of %q", list.GroupVersion)
		}
		byVersion[list.GroupVersion] = list
	}
	out := make(Groups, 0, len(groups))
	for _, g := range groups {
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, v := range preferredFirst(g) {
			version := apidiscoveryv2.APIVersionDiscovery{Version: v.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessStale}
			if list, ok := byVersion[v.GroupVersion]; ok {
				delete(byVersion, v.GroupVersion)
				resources, err := resourcesFromLegacy(list.APIResources)
				if err != nil {
					return nil, fmt.Errorf("read legacy discovery: resource list of %q: %w", v.GroupVersion, err)
				}
				version.Resources, version.Freshness = resources, apidiscoveryv2.DiscoveryFreshnessCurrent
			}
			group.Versions = append(group.Versions, version)
		}
		out = append(out, group)
	}
	for _, list := range lists { // in their order, so that the error is the same each time
		if list != nil && byVersion[list.GroupVersion] != nil {
			return nil, fmt.Errorf("read legacy discovery: a resource list of %q, which no group has (or two)", list.GroupVersion)
		}
	}
	return out, nil
}

// LegacyCore is the core group of what a server answers at /api, for [FromLegacy].
func LegacyCore(versions *metav1.APIVersions) []metav1.APIGroup {
	var core metav1.APIGroup
	for _, v := range versions.Versions {
		core.Versions = append(core.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v, Version: v})
	}
	return []metav1.APIGroup{core}
}

func preferredFirst(g metav1.APIGroup) []metav1.GroupVersionForDiscovery {
	ordered := make([]metav1.GroupVersionForDiscovery, 0, len(g.Versions))
	for _, v := range g.Versions {
		if v == g.PreferredVersion {
			ordered = append(ordered, v)
		}
	}
	for _, v := range g.Versions {
		if v != g.PreferredVersion {
			ordered = append(ordered, v)
		}
	}
	return ordered
}

// resourcesFromLegacy reads the resources first and then the subresources: a list need not have them in this order.
func resourcesFromLegacy(list []metav1.APIResource) ([]apidiscoveryv2.APIResourceDiscovery, error) {
	var out []apidiscoveryv2.APIResourceDiscovery
	place := map[string]int{}
	for _, r := range list {
		name, _, isSubresource := strings.Cut(r.Name, "/")
		if name == "" {
			return nil, fmt.Errorf("a resource named %q", r.Name)
		}
		if isSubresource {
			continue
		}
		place[name] = len(out)
		out = append(out, apidiscoveryv2.APIResourceDiscovery{
			Resource:         name,
			ResponseKind:     legacyKind(r),
			Scope:            legacyScope(r),
			SingularResource: r.SingularName,
			Verbs:            r.Verbs,
			ShortNames:       r.ShortNames,
			Categories:       r.Categories,
		})
	}
	for _, r := range list {
		name, sub, isSubresource := strings.Cut(r.Name, "/")
		if !isSubresource {
			continue
		}
		i, ok := place[name]
		if !ok {
			i = len(out)
			place[name] = i
			out = append(out, apidiscoveryv2.APIResourceDiscovery{
				Resource: name, Scope: legacyScope(r),
				ResponseKind: &metav1.GroupVersionKind{}, // not nil: clients of 0.26.0 to 0.26.3 panic (kubernetes/kubernetes#118361)
			})
		}
		out[i].Subresources = append(out[i].Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub, ResponseKind: legacyKind(r), Verbs: r.Verbs,
		})
	}
	return out, nil
}

func legacyScope(r metav1.APIResource) apidiscoveryv2.ResourceScope {
	if r.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}

// legacyKind leaves group and version empty where the list does: they are then those of the list, in both formats.
func legacyKind(r metav1.APIResource) *metav1.GroupVersionKind {
	if r.Kind == "" {
		return &metav1.GroupVersionKind{}
	}
	return &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}
