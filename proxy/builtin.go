package proxy

import (
	"slices"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// A custom resource may have the group, version and even the name of a resource that some servers
// have built in. kube-apiservers decide by group version. A server that has the group version built
// in serves the built-in resources and no custom resource in it. Any other server serves the custom
// resource (see the director in k8s.io/apiserver, pkg/server/handler.go). So under ExtensionsExact
// this server does not always serve an existing custom resource, and a peer's resource with the
// same name is not always the custom resource.

// foreign reports whether a custom resource that exists, or a subresource of it, is not served
// here, and may be served by a peer: the local server has the group version built in, without that
// resource, or it serves the custom resource without that subresource.
func (t *Table) foreign(r Resource) bool {
	if t.policy.Knowledge.Extensions != ExtensionsExact || !t.extensions.covers(r) {
		return false
	}
	local := t.local[RootGroups]
	if local.index.Resource(r.Group, r.Version, r.Resource, "") {
		return t.policy.Routing.Subresources && !local.index.Resource(r.Group, r.Version, r.Resource, r.Subresource)
	}
	return t.builtIn(local.groups, r, t.nativeHere)
}

// native reports whether a peer's document lists a resource that is built in there, although there
// is or was a custom resource of its name.
func (t *Table) native(p *peer, d *document, r Resource) bool {
	if t.policy.Knowledge.Extensions != ExtensionsExact {
		return false
	}
	r.Subresource = ""
	return slices.Contains(p.native, r) || t.builtIn(d.groups, r, p.native)
}

// builtIn reports whether a document is that of a server which has the group version of a resource
// built in. The document then lists something in it that is not an extension, or that is known to
// be built in there. If all of a built-in group version's resources have the names of custom
// resources that are older than this server's knowledge, the document does not show that it is
// built in.
func (t *Table) builtIn(groups discovery.Groups, r Resource, native []Resource) bool {
	for _, g := range groups {
		if g.Name != r.Group {
			continue
		}
		for _, v := range g.Versions {
			if v.Version == r.Version {
				return slices.ContainsFunc(v.Resources, func(o apidiscoveryv2.APIResourceDiscovery) bool {
					one := Resource{Group: r.Group, Version: r.Version, Resource: o.Resource}
					return !t.extensions.exclude(one, time.Time{}) || slices.Contains(native, one)
				})
			}
		}
	}
	return false
}

// nativeAfter is how long before its definition a peer must have listed a resource, so that it is
// built in there. It is more than servers differ in when they see a definition. If it is too short,
// a deleted custom resource is taken for a built-in one, but only until the peer's next document.
const nativeAfter = 5 * time.Second

// noteNative remembers which servers listed a custom resource well before its definition was
// created and seen: it is built in there. t has the new definitions, and before has not. A document
// that is not older by a margin proves nothing, since the peer may have seen the definition first.
// Both times count because neither suffices:
//
//   - This server may see a definition late, for example while its local server is replaced. A
//     definition that it sees before [Synced] may be older than any document.
//   - The time of creation is by another server's clock, which may be wrong.
//
// A definition whose time of creation is not known proves nothing. Neither does a version that a
// definition got later.
func (t *Table) noteNative(before *Table, seen time.Time) {
	if t.policy.Knowledge.Extensions != ExtensionsExact || !before.synced {
		return
	}
	for _, r := range t.extensions.active {
		created, known := t.extensions.current.Created[schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}]
		if !known || contains(before.extensions.active, r) {
			continue
		}
		at := seen
		if created.Before(seen) {
			at = created
		}
		listedBefore := func(d document) bool {
			since, listed := d.listedSince(r)
			return listed && since.Add(nativeAfter).Before(at) && !before.extensions.exclude(r, d.at)
		}
		if listedBefore(t.local[RootGroups]) && !slices.Contains(t.nativeHere, r) {
			t.nativeHere = append(slices.Clip(t.nativeHere), r)
		}
		for i, p := range t.peers {
			if !listedBefore(p.learnt[RootGroups]) || slices.Contains(p.native, r) {
				continue
			}
			changed := t.change(i)
			changed.native = append(slices.Clip(changed.native), r)
		}
	}
}
