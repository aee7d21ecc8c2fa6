package sim

import (
	"slices"
	"time"

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
	seen    []definition
	cache   *extendedDocument // nil if none is served; then the version's own document is right
	encoded encodedDocuments
}

// encodedDocuments has the discovery documents of a server, which keep their encodings. To encode
// them again for every request is much of the work of a run with all resources.
type encodedDocuments struct {
	version   *recorded.Version
	extended  *extendedDocument
	documents [2]*discovery.Document // by root
}

// discovery returns the document of a root as the server serves it itself.
func (srv *server) discovery(root proxy.Root) *discovery.Document {
	if e := &srv.encoded; e.documents[root] == nil || e.version != srv.version || e.extended != srv.cache {
		roots := srv.roots()
		*e = encodedDocuments{srv.version, srv.cache, [2]*discovery.Document{
			proxy.RootCore:   discovery.NewDocument("/api", roots[proxy.RootCore]),
			proxy.RootGroups: discovery.NewDocument("/apis", roots[proxy.RootGroups]),
		}}
	}
	return srv.encoded.documents[root]
}

// extensionVerbs are the verbs of every custom resource.
var extensionVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// serves returns the verbs of a resource, and whether the server serves the resource itself.
func (srv *server) serves(k resourceKey) ([]string, bool) {
	if srv.extends(k) {
		return extensionVerbs, true
	}
	verbs, ok := srv.s.index(srv.version)[k]
	if !ok || srv.hides(k) {
		return nil, false
	}
	return verbs, true
}

// extends reports whether the server serves the resource as an extension.
func (srv *server) extends(k resourceKey) bool { return srv.cache != nil && srv.cache.extra[k] }

// hides reports whether an aggregated API has taken the place of the resource's built-in group
// version.
func (srv *server) hides(k resourceKey) bool {
	return srv.cache != nil && srv.cache.hidden[groupVersion{k.group, k.version}]
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

// define changes the definitions in etcd. Each server sees the change after its own delay. The
// error is a [scenario.RefusedStep].
func (s *Simulator) define(d scenario.Definition, exists bool) (err error) {
	if exists {
		s.extensions, err = apply(s.extensions, d, s.wall())
	} else {
		s.extensions = remove(s.extensions, d)
	}
	now := s.extensions
	for _, srv := range s.servers {
		if srv.phase == down || srv.cutOff {
			continue
		}
		srv.notify(func() { srv.see(now) })
	}
	return err
}

// see replaces the extensions that the server has seen. The server serves exactly these from now
// on.
func (srv *server) see(now []definition) {
	if slices.EqualFunc(srv.seen, now, definition.equal) {
		return
	}
	s := srv.s
	s.reached.note(ReachedExtension)
	s.trace.add(s.loop.Now(), eventExtensions, srv.index, len(now), 0)
	srv.seen = now
	srv.cache = s.extend(srv.version, now)
	if srv.phase == running {
		srv.tellServed()
	}
	if !srv.on {
		return
	}
	if srv.policy.Knowledge.Extensions != proxy.ExtensionsIgnored {
		e := extensionsOf(now)
		e.At = s.wall()
		srv.observe(e)
	}
	srv.learnLocal()
}

// extensionsOf returns the definitions in the form of the sources in proxy/peers.
func extensionsOf(now []definition) proxy.Extensions {
	e := proxy.Extensions{Created: map[schema.GroupVersionResource]time.Time{}}
	for _, d := range now {
		for _, v := range d.Versions {
			gvr := schema.GroupVersionResource{Group: d.Group, Version: v, Resource: d.Resource}
			switch {
			case d.Aggregated:
				e.Aggregated = append(e.Aggregated, gvr.GroupVersion())
			case d.established:
				e.CustomResources = append(e.CustomResources, gvr)
				e.Created[gvr] = d.created
			default:
				e.Unserved = append(e.Unserved, gvr)
			}
		}
	}
	return e
}

// learnLocal tells the table which resources the local server serves.
func (srv *server) learnLocal() {
	if srv.on {
		roots := srv.roots()
		srv.tell(proxy.LocalFetched{Version: srv.release, Roots: roots, At: srv.s.wall()})
		srv.pump()
	}
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
