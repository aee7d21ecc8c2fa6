// Package workload chooses requests: what is asked of whom, next. It is pure: it has no socket, no
// clock and no goroutine, and the same choices give the same requests. Package traffic sends them
// to real servers with client-go, package sim to simulated ones in virtual time.
package workload

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// Namespace is where all namespaced objects of a load live.
const Namespace = "skewproof"

// The users of a load.
const (
	// Admin may do everything.
	Admin = "admin"
	// Reader may read everything and write nothing.
	Reader = "skewproof-reader"
	// ServiceAccount may read everything, and write in [Namespace] only.
	ServiceAccount = "skewproof-writer"
	// ServiceAccountUser is how servers call the ServiceAccount.
	ServiceAccountUser = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
)

// Users returns all users of a load. The first may do everything.
func Users() []string { return []string{Admin, Reader, ServiceAccountUser} }

// The clients that requests are meant for, and the names in Operation.Client.
const (
	ClientTyped   = "typed"              // the generated clientset, which speaks protobuf
	ClientDynamic = "dynamic"            // the dynamic client, which speaks JSON
	ClientREST    = "rest"               // a bare REST client: tables, any format of any resource, discovery, the sweep
	ClientSocket  = history.ClientSocket // asks for an upgrade to WebSocket (RFC 6455), in HTTP/1.1, on a connection of its own
	ClientForger  = "forger"             // any of these, with headers that only servers may send; see [Forgeries]
)

// Timeout is how long a client waits for the answer to a request, and to those that follow from it.
// It is longer than history.DefaultBounds.Unavailable allows a server, so that a late 503 is no
// timeout.
const Timeout = 35 * time.Second

// Request is one request of a client, as data. Values are comparable. What a request leaves empty
// follows from its verb: see Header and Payload.
type Request struct {
	// Verb is a verb of the API, or one of history.VerbDiscovery, VerbNoPeer, VerbLegacy,
	// VerbOpenAPI and VerbTable.
	Verb        string      `json:"verb"`
	GVR         history.GVR `json:"gvr,omitzero"`
	Subresource string      `json:"subresource,omitempty"`
	Namespace   string      `json:"namespace,omitempty"` // empty: all, or none
	Name        string      `json:"name,omitempty"`
	// Path replaces the path of the resource, as for discovery documents.
	Path string `json:"path,omitempty"`
	// Query is encoded. A watch adds its timeout.
	Query string `json:"query,omitempty"`
	// For is how long a watch is to last; seconds.
	For time.Duration `json:"for,omitempty"`

	// User is who asks. Empty: [Admin].
	User string `json:"user,omitempty"`
	// Client is one of the client names but ClientSocket and ClientForger. Empty: any.
	Client string `json:"client,omitempty"`
	// Upgrade asks for the connection to be upgraded.
	Upgrade bool `json:"upgrade,omitempty"`
	// Protocol is that of the upgrade: [ProtocolSPDY]. Empty: WebSocket.
	Protocol string `json:"protocol,omitempty"`
	// Forged names the [Forgery] whose headers the client sends along. Empty: none.
	Forged string `json:"forged,omitempty"`

	Accept      string `json:"accept,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	IfNoneMatch string `json:"ifNoneMatch,omitempty"`
	// Body is the bytes of the body. In a file only UTF-8 is kept as it is.
	Body string `json:"body,omitempty"`

	// Cached makes a request for a merged document conditional; Then is what the client asks for
	// after the answer. Both depend on what a [Session] remembers, among which Pick chooses.
	Cached Cached `json:"cached,omitempty"`
	Then   Then   `json:"then,omitempty"`
	Pick   int    `json:"pick,omitempty"`
	// Before is how many objects the pages before had.
	Before int `json:"before,omitempty"`
}

// Cached says which merged document a client has, if any.
type Cached string

// The conditions.
const (
	CachedLast Cached = "last" // the one that it was given last
	CachedAny  Cached = "any"  // one that it was ever given: it may have slept since
)

// Then is what a client asks for after an answer.
type Then string

// The continuations.
const (
	// ThenPages lists the following pages, until the list is complete.
	ThenPages Then = "pages"
	// ThenPreferred lists a resource in the first version that the client's merged document lists
	// of it, as kubectl and other clients with a REST mapper do.
	ThenPreferred Then = "preferred"
)

// Accept headers that ask for discovery: aggregated (KEP-3352), without what peers serve (KEP-4020,
// profile=nopeer), and the forms of older clients.
const (
	AcceptAggregated     = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	AcceptNoPeer         = AcceptAggregated + ";profile=nopeer"
	acceptBeta           = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	acceptLegacyProtobuf = acceptProtobuf
)

// The paths of OpenAPI descriptions.
const (
	OpenAPIv2 = "/openapi/v2"
	OpenAPIv3 = "/openapi/v3"
)

// methods are the HTTP methods of the verbs.
var methods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut,
	"patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
	history.VerbTable: http.MethodGet, history.VerbDiscovery: http.MethodGet, history.VerbNoPeer: http.MethodGet,
	history.VerbLegacy: http.MethodGet, history.VerbOpenAPI: http.MethodGet,
}

// Method is the HTTP method, "" for an unknown verb.
func (r *Request) Method() string { return methods[r.Verb] }

// URL is the path and query of the request.
func (r *Request) URL() *url.URL {
	u := &url.URL{Path: r.Path, RawQuery: r.Query}
	if u.Path == "" {
		u.Path = r.resourcePath()
	}
	if r.Verb == "watch" {
		query := u.Query()
		query.Set("watch", "true")
		query.Set("timeoutSeconds", strconv.Itoa(max(1, int(r.For/time.Second))))
		u.RawQuery = query.Encode()
	}
	return u
}

func (r *Request) resourcePath() string {
	root := "/apis/" + r.GVR.Group + "/"
	if r.GVR.Group == "" {
		root = "/api/"
	}
	parts := []string{root + r.GVR.Version}
	if r.Namespace != "" {
		parts = append(parts, "namespaces", r.Namespace)
	}
	parts = append(parts, r.GVR.Resource)
	if r.Verb == "get" || r.Verb == "update" || r.Verb == "patch" || r.Verb == "delete" || r.Subresource != "" {
		parts = append(parts, cmp.Or(r.Name, "x"))
	}
	if r.Subresource != "" {
		parts = append(parts, r.Subresource)
	}
	return strings.Join(parts, "/")
}

// accepts are the Accept headers of verbs whose answer has a form of its own.
var accepts = map[string]string{
	history.VerbDiscovery: AcceptAggregated, history.VerbNoPeer: AcceptNoPeer, history.VerbTable: acceptTable, history.VerbLegacy: mediaJSON,
}

// Header is what the request says of its content and of the answer that it wants, without what is
// forged. A request that says nothing of the answer leaves it to its client, which takes JSON.
func (r *Request) Header() http.Header {
	h := http.Header{}
	set := func(name, value string) {
		if value != "" {
			h[name] = []string{value}
		}
	}
	byClient := ""
	if r.Client == ClientTyped {
		byClient = acceptProtobuf
	}
	set("Accept", cmp.Or(r.Accept, accepts[r.Verb], byClient))
	set("If-None-Match", r.IfNoneMatch)
	switch r.Verb {
	case "create", "update":
		set("Content-Type", cmp.Or(r.ContentType, mediaJSON))
	case "patch":
		set("Content-Type", cmp.Or(r.ContentType, mergePatch))
	}
	return h
}

// Payload is the body. That of a write which has none is the least that an API object can be.
func (r *Request) Payload() []byte {
	switch {
	case r.Body != "":
		return []byte(r.Body)
	case r.Verb == "create", r.Verb == "update":
		return []byte(`{"metadata":{"name":"` + r.Name + `"}}`)
	case r.Verb == "patch":
		return []byte(`{}`)
	}
	return nil
}

// Sender is the name in Operation.Client: the kind of client that sends the request.
func (r *Request) Sender() string {
	switch {
	case r.Forged != "":
		return ClientForger
	case r.Upgrade && r.Protocol == ProtocolSPDY:
		return history.ClientSPDY
	case r.Upgrade:
		return ClientSocket
	}
	return r.Client
}

// String tells the request in a line.
func (r *Request) String() string {
	what := r.GVR.String()
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	s := r.Verb + " " + cmp.Or(r.Path, what)
	if r.Upgrade {
		s += ", by " + cmp.Or(r.Protocol, "WebSocket")
	}
	if r.Forged != "" {
		s += ", with a forged header (" + r.Forged + ")"
	}
	return s
}
