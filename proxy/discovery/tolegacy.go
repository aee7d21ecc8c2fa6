package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The legacy forms of merged groups, with kind and apiVersion as a kube-apiserver sets them: /api, /api/v1 and what is under
// /apis/extensions have no apiVersion (k8s.io/apiserver, pkg/endpoints/discovery, stripVersionNegotiatedSerializer).
//
// ServerAddressByClientCIDRs stays empty. It is the address that a server advertises to a client of some network: it is nothing that a set
// of servers has in common, it differs by who asks, clients have not used it for years, and the aggregator that answers
// /apis leaves it out, too. StorageVersionHash stays empty as well: aggregated discovery does not tell it.

// GroupOf returns /apis/<name>, and false if the group is not listed. The first version is the preferred one.
func GroupOf(groups Groups, name string) (*metav1.APIGroup, bool) {
	for i := range groups {
		if groups[i].Name == name {
			group := legacyGroup(&groups[i])
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return &group, true
		}
	}
	return nil, false
}

// ResourcesOf returns /apis/<group>/<version>, or /api/<version> for the empty group, and false if the version is not listed. A resource that
// only bears subresources is not in it, as in a kube-apiserver's own.
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

// legacyGroupList is /apis.
func legacyGroupList(groups Groups) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for i := range groups {
		list.Groups = append(list.Groups, legacyGroup(&groups[i]))
	}
	return list
}

// legacyVersions is /api.
func legacyVersions(groups Groups) *metav1.APIVersions {
	list := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	for i := range groups {
		if groups[i].Name != "" {
			continue
		}
		for _, v := range groups[i].Versions {
			list.Versions = append(list.Versions, v.Version)
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

// setLegacyKind leaves group and version out where they are those of the list, which is what leaving them out means.
func setLegacyKind(r *metav1.APIResource, gv schema.GroupVersion, kind *metav1.GroupVersionKind) {
	if kind == nil {
		return
	}
	r.Kind = kind.Kind
	if kind.Group != gv.Group || kind.Version != gv.Version {
		r.Group, r.Version = kind.Group, kind.Version
	}
}

// legacyVerbs is never nil: the field is a list in JSON even when it is empty.
func legacyVerbs(verbs []string) metav1.Verbs {
	if verbs == nil {
		return metav1.Verbs{}
	}
	return verbs
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
