package proxy

import (
	"context"
	"crypto/sha512"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/sync/semaphore"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/proxy/discovery"
	"github.com/skewproof/skewproof/proxy/internal/wire"
)

// maxDescriptions bounds the merged OpenAPI descriptions in memory, in bytes of their JSON.
const maxDescriptions = 32 << 20

// sharedVersion is a group version of which peers serve more resources than the local server.
type sharedVersion struct {
	root    Root
	path    string // below /openapi/v3
	missing lacking
}

// sharedVersions returns the shared versions, in the order of discovery. It returns none if
// documents of peers cannot be fetched.
func (e *exchange) sharedVersions() []sharedVersion {
	if e.h.config.Document == nil {
		return nil
	}
	var shared []sharedVersion
	for root := RootCore; root < roots; root++ {
		document, _ := e.h.documents[root].get(e.table, root, e.policy.Discovery.NewestFirst)
		for _, g := range document.Groups() {
			for _, v := range g.Versions {
				if s, ok := e.sharedVersion(root, g.Name, v); ok {
					shared = append(shared, s)
				}
			}
		}
	}
	return shared
}

func (e *exchange) sharedVersion(root Root, group string, v apidiscoveryv2.APIVersionDiscovery) (sharedVersion, bool) {
	if !e.table.local[root].index.Version(group, v.Version) {
		return sharedVersion{}, false
	}
	missing := e.lacking(root, group, v)
	return sharedVersion{root, openAPIPath(root, group, v.Version), missing}, len(missing) > 0
}

// serveOpenAPIVersion answers /openapi/v3/apis/<group>/<version> and /openapi/v3/api/<version> if
// peers serve more of the version than the local server. A caller gets the merged description only
// if the local server shows its own description to this caller.
func (e *exchange) serveOpenAPIVersion() bool {
	of := e.request.Resource
	root := of.root()
	if e.h.config.Document == nil || !e.table.local[root].index.Version(of.Group, of.Version) {
		return false
	}
	document, _ := e.h.documents[root].get(e.table, root, e.policy.Discovery.NewestFirst)
	v, ok := document.Version(of.Group, of.Version)
	if !ok {
		return false
	}
	shared, ok := e.sharedVersion(root, of.Group, v)
	if !ok {
		return false
	}
	description, err := e.describe(shared)
	if description != nil && err == nil {
		err = description.Serve(e.w, e.r, e.h.now())
	}
	if err != nil {
		e.h.log.LogAttrs(e.r.Context(), slog.LevelWarn, "the OpenAPI description of a version is the local server's alone",
			slog.String("path", shared.path), slog.Any("err", err))
	}
	return description != nil && err == nil
}

// part is the part of one peer's description that is added to a merged description.
type part struct {
	tag  string // of the peer's description
	adds lacking
}

// mergedTag is the entity tag of a merged description. It changes if one of its source descriptions
// changes, or if other parts of them are used.
func mergedTag(own string, parts []part) string {
	if len(parts) == 0 {
		return own
	}
	hash := sha512.New()
	fmt.Fprintf(hash, "%q", own)
	for _, p := range parts {
		fmt.Fprintf(hash, "\n%q %q", p.tag, p.adds.resources())
	}
	return fmt.Sprintf("%X", hash.Sum(nil))
}

// plannedParts returns the parts from which a description will be merged, according to the peers'
// indexes.
func (e *exchange) plannedParts(v sharedVersion) (parts []part) {
	v.missing.from(e, v.root, func(p PeerView, adds lacking) bool {
		tag, ok := e.peerTag(p, v.path)
		if ok {
			parts = append(parts, part{tag, adds})
		}
		return ok
	})
	return parts
}

// peerTag returns the hash that a peer's index has for a path; false if the peer does not list it.
func (e *exchange) peerTag(p PeerView, path string) (string, bool) {
	const at = "/openapi/v3"
	known, err := e.h.peerDocument(p, at, p.Incarnation, askAgainAfter)
	if err != nil {
		return "", false
	}
	index, err := discovery.DecodeOpenAPI(known.body)
	if err != nil {
		e.h.spoilt(p, at, err)
		return "", false
	}
	_, ok := index[path]
	return index.Hash(path), ok
}

// describe returns a merged description. It returns nil if the local server is to answer: no peer
// adds anything, the local server does not show its own description to the caller, or the caller is
// gone.
func (e *exchange) describe(v sharedVersion) (description *discovery.OpenAPIDescription, err error) {
	own, tag := e.ownDescription(v)
	if own == nil {
		return nil, nil
	}
	if known, ok := e.knownDescription(v, tag); ok {
		return known, nil
	}
	// These fetches are not in the turn below, so a slow peer delays only requests that need it.
	v.missing.from(e, v.root, func(p PeerView, _ lacking) bool {
		_, err := e.peerDescription(p, v)
		return err == nil
	})
	e.h.openAPI.inTurn(e.r.Context(), func() { // otherwise the client has closed its connection
		// The local server is asked again, so that a request that waits holds no copy of its answer.
		if own, tag := e.ownDescription(v); own != nil {
			var ok bool
			if description, ok = e.knownDescription(v, tag); !ok { // nobody has made it meanwhile
				description, err = e.merge(v, tag, own)
			}
		}
	})
	return description, err
}

// ownDescription returns the local server's description and its tag. It returns nil if the local
// server does not show it to the caller.
func (e *exchange) ownDescription(v sharedVersion) (own *wire.Recorder, tag string) {
	if own = e.askLocal("/openapi/v3/"+v.path, runtime.ContentTypeJSON); own != nil {
		tag = contentTag(own.Header().Get("ETag"), own.Body.Bytes())
	}
	return own, tag
}

// knownDescription returns the last merged description if nothing has changed since. It returns nil
// and true if no peer adds anything.
func (e *exchange) knownDescription(v sharedVersion, tag string) (known *discovery.OpenAPIDescription, ok bool) {
	parts := e.plannedParts(v)
	if len(parts) == 0 {
		return nil, true
	}
	known = e.h.openAPI.get(v.path)
	return known, known != nil && known.Tag() == mergedTag(tag, parts)
}

// merge merges a description of the local server's and those of peers. It returns nil if no peer
// adds anything.
func (e *exchange) merge(v sharedVersion, tag string, own *wire.Recorder) (*discovery.OpenAPIDescription, error) {
	merged, err := discovery.DecodeOpenAPIVersion(own.Body.Bytes())
	if err != nil {
		return nil, err
	}
	var parts []part
	v.missing.from(e, v.root, func(p PeerView, adds lacking) bool {
		both, from, err := e.add(merged, p, v, adds)
		if err != nil {
			return false
		}
		merged, parts = both, append(parts, part{from, adds})
		return true
	})
	if len(parts) == 0 {
		return nil, nil
	}
	body, err := merged.Encode()
	if err != nil {
		return nil, err
	}
	description := discovery.NewOpenAPIDescription(mergedTag(tag, parts), body)
	e.h.openAPI.put(v.path, description)
	return description, nil
}

// add merges a peer's description into another one. It returns the tag of the peer's description.
func (e *exchange) add(to *discovery.OpenAPIVersion, p PeerView, v sharedVersion, adds lacking) (*discovery.OpenAPIVersion, string, error) {
	known, err := e.peerDescription(p, v)
	if err != nil {
		return nil, "", err
	}
	from, err := discovery.DecodeOpenAPIVersion(known.body)
	if err == nil {
		to, err = to.Add(from, func(path string) bool { return adds.has(path) }, adds.hasKind)
	}
	if err != nil {
		e.h.spoilt(p, "/openapi/v3/"+v.path, err)
		return nil, "", err
	}
	return to, known.tag, nil
}

// peerDescription returns a peer's description of a version.
func (e *exchange) peerDescription(p PeerView, v sharedVersion) (*peerDocument, error) {
	hash, ok := e.peerTag(p, v.path)
	if !ok {
		return nil, errNotAskedAgain
	}
	return e.h.peerDocument(p, "/openapi/v3/"+v.path, p.Incarnation+" "+hash, 0)
}

// has reports whether a path of an OpenAPI description is the path of a lacking resource or
// subresource.
func (missing lacking) has(path string) bool {
	r, ok := resourceAt(path)
	if ok {
		_, ok = missing[r]
	}
	return ok
}

// resourceAt returns the resource of a path of an OpenAPI description. For example,
// "/api/v1/namespaces/{namespace}/pods" is a path of pods.
func resourceAt(path string) (Resource, bool) {
	info, err := requestInfo.NewRequestInfo(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
	if err != nil || !info.IsResourceRequest {
		return Resource{}, false
	}
	return RequestFor(info, path).Resource, true
}

// hasKind reports whether a kind, or the kind of its lists, is the kind of a lacking resource.
func (missing lacking) hasKind(k discovery.GroupVersionKind) bool {
	for r, kind := range missing { // in any order
		if kind != "" && k.Group == r.Group && k.Version == r.Version && (k.Kind == kind || k.Kind == kind+"List") {
			return true
		}
	}
	return false
}

// descriptions are merged OpenAPI descriptions, the last one of each path. They are shared: which
// caller made one does not matter. Make it with newDescriptions. It is safe for concurrent use.
type descriptions struct {
	// turn is of the request that merges. Only one at a time does, because this takes much memory.
	turn *semaphore.Weighted

	mu   sync.Mutex
	kept map[string]*discovery.OpenAPIDescription
	size int
}

func newDescriptions() *descriptions {
	return &descriptions{turn: semaphore.NewWeighted(1), kept: map[string]*discovery.OpenAPIDescription{}}
}

// inTurn calls do when it is this request's turn; false if the request's context ends first.
func (d *descriptions) inTurn(ctx context.Context, do func()) bool {
	if d.turn.Acquire(ctx, 1) != nil {
		return false
	}
	defer d.turn.Release(1)
	do()
	return true
}

func (d *descriptions) get(path string) *discovery.OpenAPIDescription {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept[path]
}

// put stores a description. If there are too many, it deletes all others.
func (d *descriptions) put(path string, description *discovery.OpenAPIDescription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.kept[path]; known != nil {
		d.size -= known.Size()
	}
	d.kept[path] = description
	if d.size += description.Size(); d.size > maxDescriptions {
		clear(d.kept)
		d.kept[path], d.size = description, description.Size()
	}
}
