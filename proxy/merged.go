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

// documentCache has the merged document of one root. The zero value is empty.
type documentCache struct {
	mu         sync.Mutex // held while a document is made
	document   *discovery.Document
	generation uint64
}

// get returns the merged document for this table, never for an older one, and whether it was
// cached.
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
	groups := merge(t.Sources(root))
	if root == RootGroups && t.marks() {
		groups = append(slices.Clip(groups), incompleteMark)
	}
	document = discovery.NewDocument(root.Path(), groups)
	if c.document == nil || c.generation < generation { // never replace a newer document
		c.document, c.generation = document, generation
	}
	return document, false
}

// serveDiscovery answers a request if merged documents have the answer, and reports whether it did.
// Other requests are routed as usual. For example, profile=nopeer goes to the local server; an old
// local server that does not know the profile ignores it.
//
// A peer gets the local server's view, so that no merged document is made from another merged
// document. Upstream instead relies on its peers to ask for profile=nopeer (from 1.35).
func (h *Handler) serveDiscovery(e *exchange) bool {
	policy := e.policy.Discovery
	if !policy.Merge || e.request.Rerouted && !e.policy.Quirks.TrustAnyHop || e.r.Method != http.MethodGet && e.r.Method != http.MethodHead {
		return false
	}
	switch path := strings.TrimSuffix(e.r.URL.Path, "/"); {
	case path == "/apis" && policy.Everywhere:
		return e.serveRoot(RootGroups)
	case path == "/api" && policy.Everywhere:
		return e.serveRoot(RootCore)
	case e.r.URL.Path == "/apis": // for /apis/ upstream has only the legacy list
		return e.serveUpstreamRoot()
	case !policy.Everywhere:
		return false
	case path == "/openapi/v3":
		return e.serveOpenAPIIndex()
	case e.request.Kind == KindDiscovery && strings.HasPrefix(path, "/openapi/"):
		return e.serveOpenAPIVersion()
	case e.request.Kind == KindDiscovery:
		return e.serveGroup()
	}
	return false
}

// serveRoot answers /api or /apis in every format. It answers 503 while this server does not know
// which resources exist. Otherwise the garbage collector and the deletion of namespaces would treat
// everything that the document lacks as absent.
func (e *exchange) serveRoot(root Root) bool {
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
	if e.policy.Discovery.Incomplete == IncompleteRefused && e.table.Incomplete() {
		e.refuseIncomplete()
		return true
	}
	document := e.document(root)
	// Only the local server knows its own address, which is part of the legacy format of /api.
	if root == RootCore && !discovery.IsAggregated(accept) && e.coversVersions(root, document.Groups()) {
		return false
	}
	document.ServeHTTP(e.w, e.r)
	return true
}

// serveUpstreamRoot answers /apis as kube-apiservers do from 1.35: in v2 only
// (endpoints/discovery/aggregated, wrapper.go).
func (e *exchange) serveUpstreamRoot() bool {
	accept := e.r.Header.Get("Accept")
	options, ok := negotiation.NegotiateMediaTypeOptions(accept, statuses.SupportedMediaTypes(), onlyV2{})
	switch {
	case !ok || options.Convert == nil:
		return false
	case discovery.Profile(accept, onlyV2{}) == discovery.NoPeerProfile:
		e.h.observer.Discovered(e.r.Context(), DiscoveryNoPeer)
		return false
	case !e.table.LocalKnown():
		return false
	}
	// The format is chosen now. The document must not choose another format that the client
	// accepts.
	r := *e.r
	r.Header = r.Header.Clone()
	r.Header.Set("Accept", options.Accepted.MediaType+";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if options.Pretty {
		r.Header.Set("Accept", r.Header.Get("Accept")+";pretty=1")
	}
	e.document(RootGroups).ServeHTTP(e.w, &r)
	return true
}

// onlyV2 allows v2 of aggregated discovery only.
type onlyV2 struct{}

func (onlyV2) AllowsMediaTypeTransform(_, _ string, gvk *schema.GroupVersionKind) bool {
	return gvk != nil && *gvk == apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")
}
func (onlyV2) AllowsServerVersion(string) bool       { return false }
func (onlyV2) AllowsStreamSchema(schema string) bool { return schema == "watch" }

// document returns the merged document of a root, and reports its source to the observer.
func (e *exchange) document(root Root) *discovery.Document {
	document, cached := e.h.documents[root].get(e.table, root, e.policy.Discovery.NewestFirst)
	from := DiscoveryMerged
	if cached {
		from = DiscoveryCached
	}
	e.h.observer.Discovered(e.r.Context(), from)
	return document
}

// serveGroup answers /apis/<group>, /apis/<group>/<version> and /api/<version> if the merged
// document has more than the local server. Groups and versions that the document lacks are routed:
// the routing decides between 404 and 503.
func (e *exchange) serveGroup() bool {
	if !e.table.LocalKnown() {
		return false
	}
	if isMark(e.request.Resource.Group, e.request.Resource.Version) && e.table.marks() {
		e.refuseIncomplete()
		return true
	}
	root := e.request.Resource.root()
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
				return !e.coversVersion(root, g.Name, v) && document.ServeVersionHashed(e.w, e.r, g.Name, v.Version, e.storageHashes(root, g.Name, v))
			}
		}
	}
	return false
}

// coversGroup reports whether the local server lists a group's versions in the same order.
func (e *exchange) coversGroup(root Root, g apidiscoveryv2.APIGroupDiscovery) bool {
	return slices.ContainsFunc(e.table.local[root].groups, func(local apidiscoveryv2.APIGroupDiscovery) bool {
		return local.Name == g.Name && slices.EqualFunc(local.Versions, g.Versions, func(a, b apidiscoveryv2.APIVersionDiscovery) bool {
			return a.Version == b.Version
		})
	})
}

// coversVersion reports whether the local server lists every resource and subresource of a version.
func (e *exchange) coversVersion(root Root, group string, v apidiscoveryv2.APIVersionDiscovery) bool {
	return e.table.local[root].index.Version(group, v.Version) && len(e.lacking(root, group, v)) == 0
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
