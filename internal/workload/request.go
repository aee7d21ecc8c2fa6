// Package workload chooses requests: the next request for each server. It is pure: it has no
// socket, no clock and no goroutine, and the same choices give the same requests. Package traffic
// sends them to real servers with client-go, and package sim to simulated servers in virtual time.
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

// Namespace is the namespace of all namespaced objects of a load.
const Namespace = "skewproof"

// The users of a load.
const (
	// Admin may do everything.
	Admin = "admin"
	// Reader may read everything and write nothing.
	Reader = "skewproof-reader"
	// ServiceAccount may read everything, and write in [Namespace] only.
	ServiceAccount = "skewproof-writer"
	// Impersonated is a user whom Admin impersonates. The user gets the right to read everything by
	// being in ImpersonatedGroup.
	Impersonated      = "skewproof-impersonated"
	ImpersonatedGroup = "skewproof-readers"
	// ServiceAccountUser is the user name of the ServiceAccount.
	ServiceAccountUser = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
)

// Users returns all users of a load. The first may do everything.
func Users() []string { return []string{Admin, Reader, ServiceAccountUser} }

// The clients that send requests, with their names in Operation.Client.
const (
	ClientTyped   = "typed"              // the generated clientset, which speaks protobuf
	ClientDynamic = "dynamic"            // the dynamic client, which speaks JSON
	ClientREST    = "rest"               // a plain REST client: tables, any format of any resource, discovery, the sweep
	ClientSocket  = history.ClientSocket // asks for an upgrade to WebSocket (RFC 6455), in HTTP/1.1, on its own connection
	ClientForger  = "forger"             // any of these, with headers that only servers may send; see [Forgeries]
)

// Timeout is how long a client waits for the answer to a request, including the requests that
// follow from it. It is longer than history.DefaultBounds.Unavailable, so that a late 503 does not
// become a timeout.
const Timeout = 35 * time.Second

// SlowRead is how a slow client reads: so many bytes, and then a pause.
const (
	SlowRead  = 4096
	SlowPause = 20 * time.Millisecond
)

// Request is one request of a client, as data. Values are comparable. Empty fields follow from the
// verb: see Header and Payload.
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
	// Query is encoded. For a watch, URL adds the timeout.
	Query string `json:"query,omitempty"`
	// For is the requested duration of a watch, in whole seconds.
	For time.Duration `json:"for,omitempty"`

	// User is the sender. Empty: [Admin].
	User string `json:"user,omitempty"`
	// Client is one of the client names except ClientSocket and ClientForger. Empty: any.
	Client string `json:"client,omitempty"`
	// Upgrade asks the server to upgrade the connection.
	Upgrade bool `json:"upgrade,omitempty"`
	// Protocol is the protocol of the upgrade: [ProtocolSPDY]. Empty: WebSocket.
	Protocol string `json:"protocol,omitempty"`
	// Forged names the [Forgery] whose headers the client adds. Empty: none.
	Forged string `json:"forged,omitempty"`

	Accept      string `json:"accept,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	IfNoneMatch string `json:"ifNoneMatch,omitempty"`
	// Body has the bytes of the body. A file keeps them unchanged only if they are UTF-8.
	Body string `json:"body,omitempty"`

	// Cached makes a request for a merged document conditional. Then says which request the client
	// sends after the answer. Both depend on the documents that a [Session] remembers; Pick chooses
	// among them.
	Cached Cached `json:"cached,omitempty"`
	Then   Then   `json:"then,omitempty"`
	Pick   int    `json:"pick,omitempty"`
	// HTTP1 sends the request by HTTP/1.1 on a connection of its own. Otherwise it shares an HTTP/2
	// connection with other requests.
	HTTP1 bool `json:"http1,omitempty"`
	// Slow reads the answer slowly ([SlowRead]). A simulated client reads as fast as it can.
	Slow bool `json:"slow,omitempty"`
	// Before is the number of objects on the earlier pages.
	Before int `json:"before,omitempty"`
	// Compare says whether answers are compared, and if so, whether this is the first request.
	Compare Compare `json:"compare,omitempty"`
}

// Compare says whether a request is sent to every server to compare the answers.
type Compare string

// The places in a comparison. The sender of the first request sends it again to every other server
// when it has been answered.
const (
	CompareFirst Compare = "first"
	CompareAgain Compare = "again"
)

// Again returns the request to every other server that follows on r. more is false if none does.
func (r Request) Again() (again Request, more bool) {
	more = r.Compare == CompareFirst
	r.Compare = CompareAgain
	return r, more
}

// Cached says which merged document a conditional client already has.
type Cached string

// The conditions.
const (
	CachedLast Cached = "last" // the last document that it received
	CachedAny  Cached = "any"  // any document that it ever received: the client may have been idle since
)

// Then says which request a client sends after an answer.
type Then string

// The continuations.
const (
	// ThenPages lists the following pages, until the list is complete.
	ThenPages Then = "pages"
	// ThenPreferred lists a resource, in the first version in the client's merged document. kubectl
	// and other clients with a REST mapper do the same.
	ThenPreferred Then = "preferred"
)

// Accept headers for discovery: aggregated (KEP-3352), without the resources of peers (KEP-4020,
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

// Method returns the HTTP method; "" for an unknown verb.
func (r *Request) Method() string { return methods[r.Verb] }

// URL returns the path and query of the request.
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

// accepts are the Accept headers of verbs with a special form of answer.
var accepts = map[string]string{
	history.VerbDiscovery: AcceptAggregated, history.VerbNoPeer: AcceptNoPeer, history.VerbTable: acceptTable, history.VerbLegacy: mediaJSON,
}

// Header returns the headers about the request's content and the wanted answer, without forged
// headers. If Accept is empty and does not follow from the verb, the client chooses it; clients
// choose JSON.
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

// Payload returns the body. A write without a body gets the smallest possible API object.
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

// Sender returns the name for Operation.Client: the kind of client that sends the request.
func (r *Request) Sender() string {
	switch {
	case r.Upgrade && r.Protocol == ProtocolSPDY: // with a forged header, too: it is answered as an upgrade
		return history.ClientSPDY
	case r.Upgrade:
		return ClientSocket
	case r.Forged != "":
		return ClientForger
	}
	return r.Client
}

// String describes the request in a line.
func (r *Request) String() string {
	what := r.GVR.String()
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	s := r.Verb + " " + cmp.Or(r.Path, what)
	if r.Upgrade {
		s += ", by " + cmp.Or(r.Protocol, "WebSocket")
	}
	if r.Query != "" {
		s += "?" + r.Query
	}
	for _, part := range []struct {
		is    bool
		words string
	}{
		{r.HTTP1, "by HTTP/1.1"}, {r.Slow, "reading slowly"}, {len(r.Body) >= LargeBody, "with a large body"},
		{r.Forged != "", "with a forged header (" + r.Forged + ")"},
	} {
		if part.is {
			s += ", " + part.words
		}
	}
	return s
}
