package proxy

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"

	"github.com/skewproof/skewproof/proxy/discovery"
)

// documentCache keeps the merged document of one root. The zero value is empty.
type documentCache struct {
	mu         sync.Mutex // held while a document is made, so that it is made once
	document   *discovery.Document
	generation uint64
}

// get returns the document of that very table, so none is ever older than what is known when it is asked for; and whether it was
// there already.
func (c *documentCache) get(t *Table, root Root, newestFirst bool) (document *discovery.Document, cached bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	generation := t.DocumentGeneration()
	if c.document != nil && c.generation == generation {
		return c.document, true
	}
	merge := discovery.MergeConsensus
	if newestFirst {
		merge = discovery.Merge
	}
	document = discovery.NewDocument(root.Path(), merge(t.Sources(root)))
	if c.document == nil || c.generation < generation { // a request with an older table must not undo what a newer one made
		c.document, c.generation = document, generation
	}
	return document, false
}

// serveDiscovery answers what is answered from merged documents, and reports whether it has. What it leaves alone is routed like everything
// else: with profile=nopeer that is to the local server. (One that does not know the profile ignores it, all versions do, and has
// nothing but its own view.)
//
// A peer that asks gets the local server's view, so that no document is ever built from another merged one. Upstream relies on the profile for
// that, which its peers ask for from 1.35 on: WrapHandler looks at the hop header of resource requests only.
func (h *Handler) serveDiscovery(e *exchange) bool {
	policy := e.policy.Discovery
	if !policy.Merge || e.request.Rerouted && !e.policy.Quirks.TrustAnyHop || e.r.Method != http.MethodGet && e.r.Method != http.MethodHead {
		return false
	}
	switch path := strings.TrimSuffix(e.r.URL.Path, "/"); {
	case path == "/apis" && policy.Everywhere, path == "/api" && policy.Everywhere:
		return e.serveRoot(path)
	case e.r.URL.Path == "/apis": // with a slash at the end upstream has the legacy list only
		return e.serveUpstreamRoot()
	case !policy.Everywhere:
		return false
	case path == "/openapi/v3":
		return e.serveOpenAPIIndex()
	case e.request.Kind == KindDiscovery && !strings.HasPrefix(path, "/openapi/"):
		return e.serveGroup()
	}
	return false
}

// serveRoot answers /api or /apis in every form.
//
// As long as it is not known what there is, the answer is 503 and no partial document: the garbage collector and the deletion of namespaces
// take what is not listed for absent.
func (e *exchange) serveRoot(path string) bool {
	accept := e.r.Header.Get("Accept")
	if discovery.WantsNoPeer(accept) {
		e.h.observer.Discovered(e.r.Context(), DiscoveryNoPeer)
		return false
	}
	if e.policy.Knowledge.FailClosed && (!e.table.Synced() || !e.table.LocalKnown()) {
		d := Decision{Action: Unavailable, Reason: ReasonUnsynced}
		e.h.observer.Decided(e.r.Context(), e.request, d, 0)
		e.unavailable(d)
		return true
	}
	if !e.table.LocalKnown() {
		return false
	}
	root := RootGroups
	if path == "/api" {
		root = RootCore
	}
	document := e.document(root)
	// The legacy form of /api says at which address this server is reached: only it knows.
	if root == RootCore && !discovery.IsAggregated(accept) && e.coversVersions(root, document.Groups()) {
		return false
	}
	document.ServeHTTP(e.w, e.r)
	return true
}

// serveUpstreamRoot answers /apis as kube-apiservers do from 1.35: v2 only (endpoints/discovery/aggregated, wrapper.go).
func (e *exchange) serveUpstreamRoot() bool {
	options, ok := negotiation.NegotiateMediaTypeOptions(e.r.Header.Get("Accept"), statuses.SupportedMediaTypes(), onlyV2{})
	switch {
	case !ok || options.Convert == nil:
		return false
	case options.Profile == discovery.NoPeerProfile:
		e.h.observer.Discovered(e.r.Context(), DiscoveryNoPeer)
		return false
	case !e.table.LocalKnown():
		return false
	}
	// The form is chosen: what else the client accepts, v2beta1 perhaps before v2, must not be chosen from again.
	r := *e.r
	r.Header = r.Header.Clone()
	r.Header.Set("Accept", options.Accepted.MediaType+";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if options.Pretty {
		r.Header.Set("Accept", r.Header.Get("Accept")+";pretty=1")
	}
	e.document(RootGroups).ServeHTTP(e.w, &r)
	return true
}

// onlyV2 admits v2 of aggregated discovery and nothing else.
type onlyV2 struct{}

func (onlyV2) AllowsMediaTypeTransform(_, _ string, gvk *schema.GroupVersionKind) bool {
	return gvk != nil && *gvk == apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")
}
func (onlyV2) AllowsServerVersion(string) bool       { return false }
func (onlyV2) AllowsStreamSchema(schema string) bool { return schema == "watch" }

// document returns the merged document of a root, and tells the observer where it comes from.
func (e *exchange) document(root Root) *discovery.Document {
	document, cached := e.h.documents[root].get(e.table, root, e.policy.Discovery.NewestFirst)
	from := DiscoveryMerged
	if cached {
		from = DiscoveryCached
	}
	e.h.observer.Discovered(e.r.Context(), from)
	return document
}

// serveGroup answers /apis/<group>, /apis/<group>/<version> and /api/<version> where the merged document has more than the local server.
// Otherwise its own answer is better: it has the hashes of storage versions, which aggregated discovery has not. What the document does
// not have is left to routing, which knows whether it is a 404 or a 503.
func (e *exchange) serveGroup() bool {
	if !e.table.LocalKnown() {
		return false
	}
	root := RootGroups
	if e.request.Resource.Group == "" {
		root = RootCore
	}
	document := e.document(root)
	for _, g := range document.Groups() {
		if g.Name != e.request.Resource.Group {
			continue
		}
		if e.request.Resource.Version == "" {
			return !e.coversGroup(root, g) && document.ServeGroup(e.w, e.r, g.Name)
		}
		for _, v := range g.Versions {
			if v.Version == e.request.Resource.Version {
				return !e.coversVersion(root, g.Name, v) && document.ServeVersion(e.w, e.r, g.Name, v.Version)
			}
		}
	}
	return false
}

// coversGroup reports whether the local server lists the same versions of a group in the same order: the first is the preferred one.
func (e *exchange) coversGroup(root Root, g apidiscoveryv2.APIGroupDiscovery) bool {
	return slices.ContainsFunc(e.table.local[root].groups, func(local apidiscoveryv2.APIGroupDiscovery) bool {
		return local.Name == g.Name && slices.EqualFunc(local.Versions, g.Versions, func(a, b apidiscoveryv2.APIVersionDiscovery) bool {
			return a.Version == b.Version
		})
	})
}

// coversVersion reports whether the local server lists every resource and subresource of a version.
func (e *exchange) coversVersion(root Root, group string, v apidiscoveryv2.APIVersionDiscovery) bool {
	index := e.table.local[root].index
	if !index.Version(group, v.Version) {
		return false
	}
	for _, r := range v.Resources {
		if !index.Resource(group, v.Version, r.Resource, "") {
			return false
		}
		for _, s := range r.Subresources {
			if !index.Resource(group, v.Version, r.Resource, s.Subresource) {
				return false
			}
		}
	}
	return true
}

// coversVersions reports whether the local server lists every group and version.
func (e *exchange) coversVersions(root Root, groups discovery.Groups) bool {
	for _, g := range groups {
		for _, v := range g.Versions {
			if !e.table.local[root].index.Version(g.Name, v.Version) {
				return false
			}
		}
	}
	return true
}
