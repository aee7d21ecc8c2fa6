package proxy

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// serveOpenAPIIndex answers /openapi/v3 with the local server's list. If peers serve more resources
// of a version, the URL of its description has the hash of the merged description. Versions that
// only peers serve are added. Requests for their descriptions are routed to a peer
// (RoutingPolicy.DiscoveryPaths). The URLs of these versions have no hash, so clients do not cache
// the descriptions for ever.
func (e *exchange) serveOpenAPIIndex() bool {
	if !e.table.LocalKnown() {
		return false
	}
	missing, shared := e.peersOnly(), e.sharedVersions()
	if len(missing)+len(shared) == 0 {
		return false
	}
	merged := e.mergedIndex(missing, shared)
	if merged == nil {
		return false // the local server answers with its own error
	}
	document, err := discovery.NewOpenAPIDocument(merged)
	if err != nil {
		e.fail(err)
		return true
	}
	document.ServeHTTP(e.w, e.r)
	return true
}

// mergedIndex returns the local server's index with the missing and the shared versions. It returns
// nil if the local server gives the caller no index.
func (e *exchange) mergedIndex(missing []string, shared []sharedVersion) discovery.OpenAPIIndex {
	own := e.askLocal("/openapi/v3", "")
	if own == nil {
		return nil
	}
	index, err := discovery.DecodeOpenAPI(own.Body.Bytes())
	if err != nil {
		return nil
	}
	merged := maps.Clone(index)
	for _, path := range missing {
		u, good := discovery.OpenAPIURL(path)
		if _, ok := merged[path]; good && !ok {
			merged[path] = u
		}
	}
	for _, v := range shared {
		if _, ok := index[v.path]; ok {
			merged[v.path] = e.indexed(index, v)
		}
	}
	return merged
}

// indexed returns the URL for a version of which peers serve more resources.
func (e *exchange) indexed(index discovery.OpenAPIIndex, v sharedVersion) string {
	parts := e.plannedParts(v)
	u, good := discovery.OpenAPIURL(v.path)
	own := index.Hash(v.path)
	switch {
	case len(parts) == 0 || !good:
		return index[v.path]
	case own == "" || slices.ContainsFunc(parts, func(p part) bool { return p.tag == "" }):
		return u // a hash would not change when the description changes
	}
	return u + "?hash=" + url.QueryEscape(mergedTag(own, parts))
}

// peersOnly returns the paths, below /openapi/v3, of the versions that only peers serve.
func (e *exchange) peersOnly() []string {
	var missing []string
	for root := RootCore; root < roots; root++ {
		document, _ := e.h.documents[root].get(e.table, root, e.policy.Discovery.NewestFirst)
		for _, g := range document.Groups() {
			for _, v := range g.Versions {
				if !e.table.local[root].index.Version(g.Name, v.Version) && !isMark(g.Name, v.Version) {
					missing = append(missing, openAPIPath(root, g.Name, v.Version))
				}
			}
		}
	}
	return missing
}

// openAPIPath returns the path of a version below /openapi/v3.
func openAPIPath(root Root, group, version string) string {
	if root == RootCore {
		return "api/" + version
	}
	return "apis/" + group + "/" + version
}

// askLocal asks the local server for a path as the same user, and returns its answer. It returns
// nil if the answer is not 200 or is too large. An empty accept asks for any format.
func (e *exchange) askLocal(path, accept string) *wire.Recorder {
	r := plainGet(e.r)
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.RequestURI = path, "", "", path
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	answer := wire.NewRecorder(discovery.MaxBody)
	e.h.config.Local.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || answer.Truncated || answer.Header().Get("Content-Encoding") != "" {
		return nil
	}
	return answer
}

// plainGet returns a request of the same user for the whole uncompressed body.
func plainGet(r *http.Request) *http.Request {
	plain := r.Clone(r.Context())
	plain.Method, plain.Body, plain.ContentLength = http.MethodGet, http.NoBody, 0
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range", "Accept"} {
		plain.Header.Del(name)
	}
	plain.Header.Set("Accept-Encoding", "identity")
	return plain
}
