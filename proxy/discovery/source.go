// Package discovery reads and writes Kubernetes discovery documents. It decodes aggregated and
// legacy documents, merges the documents of several servers, filters documents, and serves them in
// every format and encoding. Documents are immutable: no function changes its arguments, and
// callers must not change arguments or results.
package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/util/version"
)

// Groups is an aggregated discovery document: the groups of one server, in that server's order. It
// must not be changed after it was made.
type Groups = []apidiscoveryv2.APIGroupDiscovery

// Same reports whether two documents are one value, which is true only if they are the same memory.
func Same(a, b Groups) bool { return sameBacking(a, b) }

// Source is the discovery of one server at one root.
type Source struct {
	// Server is the identity of the server. No two sources of a merge have the same identity.
	Server string
	// Version is the gitVersion of the server's /version ("v1.37.1"). A text that is not a version,
	// including "", is older than every version.
	Version string
	// Local is true for the server that merges. Only [MergeConsensus] uses it.
	Local bool
	// Groups is the server's document.
	Groups Groups
}

// NewestFirst returns the sources sorted by version, the newest first, then by identity. The order
// is total, so all servers get the same order.
func NewestFirst(sources []Source) []Source {
	type aged struct {
		source  Source
		version *version.Version
	}
	all := make([]aged, len(sources))
	for i, s := range sources {
		all[i] = aged{s, semantic(s.Version)}
	}
	slices.SortStableFunc(all, func(a, b aged) int {
		return cmp.Or(newer(a.version, b.version), strings.Compare(a.source.Server, b.source.Server))
	})
	ordered := make([]Source, len(all))
	for i := range all {
		ordered[i] = all[i].source
	}
	return ordered
}

// newer is negative if a is newer than b. Nil is older than everything.
func newer(a, b *version.Version) int {
	older := func(a, b *version.Version) bool { return b != nil && (a == nil || a.LessThan(b)) }
	switch {
	case older(b, a):
		return -1
	case older(a, b):
		return 1
	}
	return 0
}

// semantic parses a version, or returns nil. A version that is not semantic is cut to
// major.minor.patch, because the library does not order the two forms consistently (1.2.3-rc <
// 1.2.3, and the generic 1.2.3.0 equals both).
func semantic(text string) *version.Version {
	if v, err := version.ParseSemantic(text); err == nil {
		return v
	}
	v, err := version.ParseGeneric(text)
	if err != nil {
		return nil
	}
	v, err = version.ParseSemantic(fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch()))
	if err != nil {
		return nil
	}
	return v
}

// Index reports in constant time whether a document lists something. It is immutable and safe for
// concurrent use. A nil Index lists nothing.
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
	return x != nil && has(x.groups, group)
}

// Version reports whether the version of the group is listed.
func (x *Index) Version(group, version string) bool {
	return x != nil && has(x.versions, [2]string{group, version})
}

// Resource reports whether the resource is listed. If subresource is not empty, it reports whether
// the subresource is listed.
func (x *Index) Resource(group, version, resource, subresource string) bool {
	return x != nil && has(x.resources, [4]string{group, version, resource, subresource})
}

func has[K comparable](set map[K]struct{}, key K) bool {
	_, ok := set[key]
	return ok
}
