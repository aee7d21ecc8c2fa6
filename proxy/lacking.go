package proxy

import (
	"maps"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// lacking has the resources and subresources of one group version that only peers serve, each with
// its kind. The kind is empty if it belongs to another group version, or if the local server serves
// a resource of the same kind too.
type lacking map[Resource]string

// lacking returns the resources and subresources of a version in the merged document that the local
// server does not list.
func (e *exchange) lacking(root Root, group string, v apidiscoveryv2.APIVersionDiscovery) lacking {
	index := e.table.local[root].index
	missing, known := lacking{}, map[string]bool{}
	for _, r := range v.Resources {
		kind := ""
		if k := r.ResponseKind; k != nil && (k.Group == "" || k.Group == group) && (k.Version == "" || k.Version == v.Version) {
			kind = k.Kind
		}
		if index.Resource(group, v.Version, r.Resource, "") {
			known[kind] = true
		} else {
			missing[Resource{Group: group, Version: v.Version, Resource: r.Resource}] = kind
		}
		for _, s := range r.Subresources {
			if !index.Resource(group, v.Version, r.Resource, s.Subresource) {
				missing[Resource{Group: group, Version: v.Version, Resource: r.Resource, Subresource: s.Subresource}] = ""
			}
		}
	}
	for r, kind := range missing { // in any order
		if known[kind] {
			missing[r] = ""
		}
	}
	return missing
}

// from calls take for each peer that serves something that is lacking, the newest peer first. adds
// is the part that this peer serves. If take returns true, later peers are not asked for that part.
// So the result does not depend on the order in which the peers are known.
func (missing lacking) from(e *exchange, root Root, take func(p PeerView, adds lacking) bool) {
	left := maps.Clone(missing)
	for _, s := range discovery.NewestFirst(e.table.Sources(root)) {
		p, ok := e.table.Peer(ServerID(s.Server))
		if !ok || s.Local || len(left) == 0 {
			continue
		}
		index, adds := discovery.NewIndex(s.Groups), lacking{}
		for r, kind := range left { // in any order
			if index.Resource(r.Group, r.Version, r.Resource, r.Subresource) {
				adds[r] = kind
			}
		}
		if len(adds) > 0 && take(p, adds) {
			maps.DeleteFunc(left, func(r Resource, _ string) bool { _, taken := adds[r]; return taken })
		}
	}
}

// resources returns the names of the lacking resources, sorted.
func (missing lacking) resources() []string {
	var names []string
	for r := range missing { // in any order
		names = append(names, r.String())
	}
	slices.Sort(names)
	return names
}
