package proxy

import (
	"context"
	"crypto/sha512"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"golang.org/x/sync/semaphore"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/skewproof/skewproof/proxy/discovery"
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
	own := e.askLocal("/openapi/v3/"+shared.path, runtime.ContentTypeJSON)
	if own == nil {
		return false // the local server answers with its own error
	}
	var description *discovery.OpenAPIDescription
	var err error
	if !e.h.openAPI.inTurn(e.r.Context(), func() { description, err = e.describe(shared, own) }) {
		return false // the client has closed its connection
	}
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

// describe merges a description. If nothing has changed, it returns the last one. It returns nil if
// no peer adds anything.
func (e *exchange) describe(v sharedVersion, own *recorder) (*discovery.OpenAPIDescription, error) {
	tag := contentTag(own.header.Get("ETag"), own.body.Bytes())
	parts := e.plannedParts(v)
	if len(parts) == 0 {
		return nil, nil
	}
	if known := e.h.openAPI.get(v.path); known != nil && known.Tag() == mergedTag(tag, parts) {
		return known, nil
	}
	merged, err := discovery.DecodeOpenAPIVersion(own.body.Bytes())
	if err != nil {
		return nil, err
	}
	parts = nil
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
	hash, ok := e.peerTag(p, v.path)
	if !ok {
		return nil, "", errNotAskedAgain
	}
	path := "/openapi/v3/" + v.path
	known, err := e.h.peerDocument(p, path, p.Incarnation+" "+hash, 0)
	if err != nil {
		return nil, "", err
	}
	from, err := discovery.DecodeOpenAPIVersion(known.body)
	if err == nil {
		to, err = to.Add(from, func(path string) bool { return adds.has(e.h, path) }, adds.hasKind)
	}
	if err != nil {
		e.h.spoilt(p, path, err)
		return nil, "", err
	}
	return to, known.tag, nil
}

// has reports whether a path of an OpenAPI description is the path of a lacking resource or
// subresource.
func (missing lacking) has(h *Handler, path string) bool {
	r, ok := h.resourceAt(path)
	if ok {
		_, ok = missing[r]
	}
	return ok
}

// resourceAt returns the resource of a path of an OpenAPI description. For example,
// "/api/v1/namespaces/{namespace}/pods" is a path of pods.
func (h *Handler) resourceAt(path string) (Resource, bool) {
	info, err := h.config.RequestInfo.NewRequestInfo(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
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

// descriptions are merged OpenAPI descriptions, the last one of each path. Only one request at a
// time may make them, because this takes much memory. Make it with newDescriptions.
type descriptions struct {
	turn *semaphore.Weighted
	kept map[string]*discovery.OpenAPIDescription // only the request that has the turn may use it
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

func (d *descriptions) get(path string) *discovery.OpenAPIDescription { return d.kept[path] }

// put stores a description. If there are too many, it deletes all others.
func (d *descriptions) put(path string, description *discovery.OpenAPIDescription) {
	if known := d.kept[path]; known != nil {
		d.size -= known.Size()
	}
	d.kept[path] = description
	if d.size += description.Size(); d.size > maxDescriptions {
		clear(d.kept)
		d.kept[path], d.size = description, description.Size()
	}
}
