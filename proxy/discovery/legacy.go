package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
