package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// Groups is an aggregated discovery document: the groups of one server, in that server's order. It must not be changed after it was made.
type Groups = []apidiscoveryv2.APIGroupDiscovery

// Index answers in constant time whether a document lists something. It is immutable and safe for concurrent use; the nil
// Index lists nothing.
type Index struct {
	groups    map[string]struct{}
	versions  map[[2]string]struct{}
	resources map[[4]string]struct{}
}

// NewIndex indexes a document.
func NewIndex(groups Groups) *Index {
	x := &Index{groups: map[string]struct{}{}, versions: map[[2]string]struct{}{}, resources: map[[4]string]struct{}{}}
	for _, g := range groups {
		x.groups[g.Name] = struct{}{}
		for _, v := range g.Versions {
			x.versions[[2]string{g.Name, v.Version}] = struct{}{}
			for _, r := range v.Resources {
				x.resources[[4]string{g.Name, v.Version, r.Resource}] = struct{}{}
				for _, s := range r.Subresources {
					x.resources[[4]string{g.Name, v.Version, r.Resource, s.Subresource}] = struct{}{}
				}
			}
		}
	}
	return x
}

// Group reports whether the group is listed.
func (x *Index) Group(group string) bool {
	if x == nil {
		return false
	}
	_, ok := x.groups[group]
	return ok
}

// Version reports whether the version of the group is listed.
func (x *Index) Version(group, version string) bool {
	if x == nil {
		return false
	}
	_, ok := x.versions[[2]string{group, version}]
	return ok
}

// Resource reports whether the resource is listed, or its subresource if that is not empty.
func (x *Index) Resource(group, version, resource, subresource string) bool {
	if x == nil {
		return false
	}
	_, ok := x.resources[[4]string{group, version, resource, subresource}]
	return ok
}
