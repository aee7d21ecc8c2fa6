package sim

import (
	"cmp"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/sim/recorded"
)

// resourceKey names a resource or a subresource.
type resourceKey struct{ group, version, resource, subresource string }

// extended has the resources that a server serves in addition to those of its version: the custom
// resources and aggregated APIs that it has seen.
type extended struct {
	seen  []scenario.Definition
	cache *extendedDocument // nil if none is seen; then the version's own document is right
}

// extendedDocument is the discovery of a server with extensions.
type extendedDocument struct {
	version  *recorded.Version
	roots    [2]discovery.Groups
	document history.Document
}

// extensionVerbs are the verbs of every custom resource.
var extensionVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// serves returns the verbs of a resource, and whether the server serves the resource itself.
func (srv *server) serves(k resourceKey) ([]string, bool) {
	if verbs, ok := srv.s.index(srv.version)[k]; ok {
		return verbs, true
	}
	return extensionVerbs, srv.extends(k)
}

// extends reports whether the server serves the resource as an extension.
func (srv *server) extends(k resourceKey) bool {
	for _, d := range srv.seen {
		if d.Group == k.group && d.Resource == k.resource && k.subresource == "" && slices.Contains(d.Versions, k.version) {
			return true
		}
	}
	return false
}

// index returns the resources of a version with their verbs, for lookups.
func (s *Simulator) index(v *recorded.Version) map[resourceKey][]string {
	if index, ok := s.indexes[v]; ok {
		return index
	}
	index := map[resourceKey][]string{}
	for _, r := range v.Document.Resources {
		index[resourceKey{r.Group, r.Version, r.Resource, ""}] = r.Verbs
		for _, sub := range r.Subresources {
			index[resourceKey{r.Group, r.Version, r.Resource, sub.Name}] = sub.Verbs
		}
	}
	s.indexes[v] = index
	return index
}

func (e *extended) roots(v *recorded.Version) [2]discovery.Groups {
	if e.cache == nil {
		return v.Roots
	}
	return e.cache.roots
}

// document returns the server's own discovery, in the form that invariants read.
func (srv *server) document() history.Document {
	if srv.cache == nil {
		return srv.version.Document
	}
	return srv.cache.document
}

// define changes the definitions in etcd. Each server sees the change after its own delay.
func (s *Simulator) define(d scenario.Definition, exists bool) {
	s.extensions = slices.DeleteFunc(slices.Clone(s.extensions), func(o scenario.Definition) bool { return o.Group == d.Group && o.Resource == d.Resource })
	if exists {
		s.extensions = append(s.extensions, d)
	}
	// kube-apiserver lists the resources of a group version by name, and not in the order in which
	// they were defined.
	slices.SortFunc(s.extensions, func(a, b scenario.Definition) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	now := s.extensions
	for _, srv := range s.servers {
		if srv.phase == down || srv.cutOff {
			continue
		}
		srv.notify(func() { srv.see(now) })
	}
}

// see replaces the extensions that the server has seen. The server serves exactly these from now
// on.
func (srv *server) see(now []scenario.Definition) {
	if slices.EqualFunc(srv.seen, now, func(a, b scenario.Definition) bool {
		return a.Group == b.Group && a.Resource == b.Resource && slices.Equal(a.Versions, b.Versions)
	}) {
		return
	}
	s := srv.s
	s.reached.note(ReachedExtension)
	s.trace.add(s.loop.Now(), eventExtensions, srv.index, len(now), 0)
	srv.seen = now
	srv.cache = nil
	if len(now) > 0 {
		srv.cache = s.extend(srv.version, now)
	}
	if srv.phase == running {
		srv.tellServed()
		srv.tellPeers()
	}
	if !srv.on {
		return
	}
	e := proxy.Extensions{At: s.wall()}
	for _, d := range now {
		for _, v := range d.Versions {
			if d.Aggregated {
				e.Aggregated = append(e.Aggregated, schema.GroupVersion{Group: d.Group, Version: v})
			} else {
				e.CustomResources = append(e.CustomResources, schema.GroupVersionResource{Group: d.Group, Version: v, Resource: d.Resource})
			}
		}
	}
	if srv.policy.Knowledge.Extensions != proxy.ExtensionsIgnored {
		srv.observe(e)
	}
	srv.learnLocal()
}

// learnLocal tells the table which resources the local server serves.
func (srv *server) learnLocal() {
	if srv.on {
		roots := srv.roots()
		srv.tell(proxy.LocalFetched{Version: srv.release, Roots: roots, At: srv.s.wall()})
		srv.pump()
	}
}

// extend makes the documents of a version with extensions. The extensions follow the built-in
// resources, as kube-apiserver lists them.
func (s *Simulator) extend(v *recorded.Version, definitions []scenario.Definition) *extendedDocument {
	key := v.Document.Hash
	for _, d := range definitions {
		key += "+" + d.String()
	}
	if e, ok := s.extended[key]; ok {
		return e
	}
	e := &extendedDocument{version: v, roots: v.Roots, document: history.Document{Hash: key, Bytes: v.Document.Bytes}}
	e.roots[1] = slices.Clone(v.Roots[1])
	e.document.Resources = slices.Clone(v.Document.Resources)
	for _, d := range definitions {
		g := slices.IndexFunc(e.roots[1], func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == d.Group })
		if g < 0 {
			g = len(e.roots[1])
			e.roots[1] = append(e.roots[1], apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: d.Group}})
		}
		group := &e.roots[1][g]
		group.Versions = slices.Clone(group.Versions)
		for _, version := range d.Versions {
			v := slices.IndexFunc(group.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == version })
			if v < 0 {
				v = len(group.Versions)
				group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
			}
			of := &group.Versions[v]
			of.Resources = append(slices.Clip(of.Resources), apidiscoveryv2.APIResourceDiscovery{
				Resource: d.Resource, ResponseKind: &metav1.GroupVersionKind{Group: d.Group, Version: version, Kind: d.Resource},
				Scope: apidiscoveryv2.ScopeCluster, SingularResource: d.Resource, Verbs: extensionVerbs,
			})
			e.document.Resources = append(e.document.Resources, history.Resource{
				GVR: history.GVR{Group: d.Group, Version: version, Resource: d.Resource}, Kind: d.Resource, Verbs: extensionVerbs,
			})
		}
	}
	s.extended[key] = e
	return e
}

// storageVersionObjects returns the resources in the StorageVersion objects. Each server whose
// lease still exists and that has written its objects is in them. Custom resources and aggregated
// APIs have no such objects.
func (s *Simulator) storageVersionObjects() *proxy.StorageVersions {
	e := &proxy.StorageVersions{Served: map[schema.GroupVersionResource][]proxy.ServerID{}}
	for _, srv := range s.servers {
		if !srv.lease.identity || srv.lease.published == 0 {
			continue
		}
		for _, r := range srv.version.Document.Resources {
			gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
			e.Served[gvr] = append(e.Served[gvr], srv.id)
		}
	}
	return e
}
