package discovery

import (
	"fmt"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FromLegacy makes groups from the answers of a server without aggregated discovery. groups are its
// groups (/apis, or [LegacyCore] for /api). lists are the resource lists of their versions
// (/apis/<group>/<version>, /api/v1), in any order.
//
// The preferred version of a group comes first. A version without a list is Stale and has no
// resources, like an unavailable aggregated API in an aggregated document. The other versions are
// Current. "pods/status" becomes a subresource of pods. If pods itself is not listed, it is added
// without kind and verbs. It is an error if a list belongs to no group, if there are two lists of
// one version, or if a resource has no name. FromLegacy does not modify its inputs, but the result
// shares lists of strings with them.
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
	for _, list := range lists { // not over the map, so that the error is always the same
		if list != nil && byVersion[list.GroupVersion] != nil {
			return nil, fmt.Errorf("read legacy discovery: the resource list of %q belongs to no group", list.GroupVersion)
		}
	}
	return out, nil
}

// LegacyCore returns the core group from a server's answer at /api, for [FromLegacy].
func LegacyCore(versions *metav1.APIVersions) []metav1.APIGroup {
	var core metav1.APIGroup
	for _, v := range versions.Versions {
		core.Versions = append(core.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v, Version: v})
	}
	return []metav1.APIGroup{core}
}

func preferredFirst(g metav1.APIGroup) []metav1.GroupVersionForDiscovery {
	isPreferred := func(v metav1.GroupVersionForDiscovery) bool { return v == g.PreferredVersion }
	others := slices.DeleteFunc(slices.Clone(g.Versions), isPreferred)
	preferred := slices.DeleteFunc(slices.Clone(g.Versions), func(v metav1.GroupVersionForDiscovery) bool { return !isPreferred(v) })
	return append(preferred, others...)
}

// resourcesFromLegacy reads the resources before the subresources: a list may have them in any
// order.
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
				ResponseKind: &metav1.GroupVersionKind{}, // not nil: client-go 0.26.0 to 0.26.3 panics (kubernetes/kubernetes#118361)
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

// legacyKind leaves the group and version empty if the list leaves them empty. In both formats,
// this means the group and version of the list itself.
func legacyKind(r metav1.APIResource) *metav1.GroupVersionKind {
	if r.Kind == "" {
		return &metav1.GroupVersionKind{}
	}
	return &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// The legacy forms have kind and apiVersion as a kube-apiserver sets them. /api, /api/v1 and
// everything under /apis/extensions have no apiVersion (k8s.io/apiserver, pkg/endpoints/discovery,
// stripVersionNegotiatedSerializer).
//
// ServerAddressByClientCIDRs stays empty. It differs between servers and clients, nobody uses it,
// and the aggregator that answers /apis omits it too. StorageVersionHash stays empty, because
// aggregated discovery does not have it; see [Document.ServeVersion].

// GroupOf returns the answer for /apis/<name>, and false if the group is not listed. The first
// version is the preferred one.
func GroupOf(groups Groups, name string) (*metav1.APIGroup, bool) {
	g, ok := groupOf(groups, name)
	if !ok {
		return nil, false
	}
	group := legacyGroup(g)
	group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return &group, true
}

// ResourcesOf returns the answer for /apis/<group>/<version>, or /api/<version> for the empty
// group. It returns false if the version is not listed. As in a kube-apiserver, the list does not
// contain a resource that exists only as the parent of subresources.
func ResourcesOf(groups Groups, group, version string) (*metav1.APIResourceList, bool) {
	v, ok := versionOf(groups, group, version)
	if !ok {
		return nil, false
	}
	gv := schema.GroupVersion{Group: group, Version: version}
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	if group == "" || group == "extensions" {
		list.APIVersion = ""
	}
	for i := range v.Resources {
		r := &v.Resources[i]
		namespaced := r.Scope == apidiscoveryv2.ScopeNamespace
		if len(r.Verbs) > 0 || r.ResponseKind != nil && r.ResponseKind.Kind != "" {
			resource := metav1.APIResource{
				Name: r.Resource, SingularName: r.SingularResource, Namespaced: namespaced,
				Verbs: legacyVerbs(r.Verbs), ShortNames: r.ShortNames, Categories: r.Categories,
			}
			setLegacyKind(&resource, gv, r.ResponseKind)
			list.APIResources = append(list.APIResources, resource)
		}
		for _, s := range r.Subresources {
			resource := metav1.APIResource{Name: r.Resource + "/" + s.Subresource, Namespaced: namespaced, Verbs: legacyVerbs(s.Verbs)}
			setLegacyKind(&resource, gv, s.ResponseKind)
			list.APIResources = append(list.APIResources, resource)
		}
	}
	return list, true
}

// legacyGroupList returns the answer for /apis.
func legacyGroupList(groups Groups) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for i := range groups {
		list.Groups = append(list.Groups, legacyGroup(&groups[i]))
	}
	return list
}

// legacyVersions returns the answer for /api.
func legacyVersions(groups Groups) *metav1.APIVersions {
	list := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	for _, g := range groups {
		if g.Name == "" {
			list.Versions = append(list.Versions, namesOf(g.Versions, versionLevel.key)...)
		}
	}
	return list
}

func legacyGroup(g *apidiscoveryv2.APIGroupDiscovery) metav1.APIGroup {
	group := metav1.APIGroup{Name: g.Name, Versions: []metav1.GroupVersionForDiscovery{}}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Version})
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

// setLegacyKind omits the group and version if they are the list's own.
func setLegacyKind(r *metav1.APIResource, gv schema.GroupVersion, kind *metav1.GroupVersionKind) {
	if kind == nil {
		return
	}
	r.Kind = kind.Kind
	if kind.Group != gv.Group || kind.Version != gv.Version {
		r.Group, r.Version = kind.Group, kind.Version
	}
}

// legacyVerbs is never nil: the field is a list in JSON even if it is empty.
func legacyVerbs(verbs []string) metav1.Verbs {
	if verbs == nil {
		return metav1.Verbs{}
	}
	return verbs
}

func groupOf(groups Groups, name string) (*apidiscoveryv2.APIGroupDiscovery, bool) {
	for i := range groups {
		if groups[i].Name == name {
			return &groups[i], true
		}
	}
	return nil, false
}

func versionOf(groups Groups, group, version string) (*apidiscoveryv2.APIVersionDiscovery, bool) {
	for i := range groups {
		if groups[i].Name != group {
			continue
		}
		for j := range groups[i].Versions {
			if groups[i].Versions[j].Version == version {
				return &groups[i].Versions[j], true
			}
		}
	}
	return nil, false
}
