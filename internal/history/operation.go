package history

// Body is the kind of body that a response had.
type Body string

// The kinds of response bodies.
const (
	BodyNone      Body = ""          // no body, or none was read
	BodyObject    Body = "object"    // an API object
	BodyList      Body = "list"      // a list of API objects
	BodyTable     Body = "table"     // meta.k8s.io Table
	BodyStatus    Body = "status"    // metav1.Status
	BodyDiscovery Body = "discovery" // aggregated or legacy discovery
	BodyEvents    Body = "events"    // a watch stream
	BodyText      Body = "text"      // anything else, such as "404 page not found"
)

// Content says whether a body is complete and valid for its media type: JSON, CBOR or the protobuf
// envelope.
type Content string

// The results of decoding a body.
const (
	ContentUnknown Content = ""       // not decoded: no body, a stream, another media type, or an older history
	ContentWhole   Content = "whole"  // it can be decoded
	ContentBroken  Content = "broken" // it cannot be decoded, although HTTP says that it is complete
)

// Missing says what a 404 denied. Only MissingResource can be a false 404.
type Missing string

// The things that a 404 can deny.
const (
	MissingNothing  Missing = ""         // the response was not a 404
	MissingObject   Missing = "object"   // the server serves the resource, but the object or namespace does not exist
	MissingResource Missing = "resource" // the server does not know the resource, group or version
)

// Failure says why an operation got no complete response.
type Failure string

// The reasons why an operation got no complete response.
const (
	FailureNone     Failure = ""
	FailureRefused  Failure = "refused"  // the connection was refused
	FailureReset    Failure = "reset"    // the connection was reset or closed before the response was complete
	FailureTimeout  Failure = "timeout"  // the client stopped waiting
	FailureTLS      Failure = "tls"      // the TLS handshake failed for another reason
	FailureCanceled Failure = "canceled" // the run cancelled it or sent it too late: says nothing about the server
	FailureOther    Failure = "other"
)

// Verbs in Operation.Verb in addition to the API's verbs ("get", "list", "create", "update",
// "patch", "delete", "watch").
const (
	VerbDiscovery = "discovery" // GET /apis or /api in aggregated form, merged view
	VerbTable     = "table"     // a list requested as a Table
	VerbNoPeer    = "nopeer"    // GET /apis or /api in aggregated form with profile=nopeer: the server's own view
	VerbLegacy    = "legacy"    // GET /apis or /api in any older format; the Document lists the group versions
	VerbOpenAPI   = "openapi"   // GET /openapi/v2 or /openapi/v3; the Document lists the described group versions
)

// Purpose says why an operation was made.
type Purpose string

// The purposes of an operation.
const (
	PurposeLoad  Purpose = "load"  // the background load
	PurposeSweep Purpose = "sweep" // part of a sweep over everything that discovery lists
)

// Values of Operation.Client for clients that ask for an upgrade.
const (
	ClientSocket = "websocket" // to WebSocket (RFC 6455)
	ClientSPDY   = "spdy"      // to SPDY/3.1, as kubectl did before WebSocket for exec, attach and port-forward
)

// AsksForUpgrade reports whether the client asked for the connection to be upgraded.
func (o *Operation) AsksForUpgrade() bool { return o.Client == ClientSocket || o.Client == ClientSPDY }

// Operation is one request as its client saw it.
//
// Histories have millions of operations, and most of them ask for the same and are answered alike.
// So those of a history that was read, or that comes from the simulator, share Sent and Received:
// never change these two there. Neither is nil.
type Operation struct {
	// ID is unique in the run. It is sent as the Audit-ID, which joins the operation with its Hops.
	ID string `json:"id"`
	*Sent
	Start Time `json:"start"`
	End   Time `json:"end"`
	*Received
}

// Sent is what a client asked for.
type Sent struct {
	Purpose     Purpose `json:"purpose"`
	Client      string  `json:"client"` // which client sent it, such as "dynamic", [ClientSocket] or [ClientSPDY]
	User        string  `json:"user"`   // the user who sent it, or whom the sender impersonated
	Server      string  `json:"server"` // the server to which it was sent
	Verb        string  `json:"verb"`
	GVR         GVR     `json:"gvr,omitzero"`
	Subresource string  `json:"subresource,omitempty"`
	Namespace   string  `json:"namespace,omitempty"`
	Name        string  `json:"name,omitempty"`
	Path        string  `json:"path"` // path and query as sent
	// Impersonator is the user who sent it and impersonated User. It is empty if User sent it.
	Impersonator string `json:"impersonator,omitempty"`
	// Rerouted is true if the client itself set the header by which peers mark forwarded requests.
	Rerouted bool `json:"rerouted,omitempty"`
	// Accept is the Accept header; empty means JSON or anything.
	Accept string `json:"accept,omitempty"`
	// ContentType is the media type of the request's body. It is empty if the request has no body,
	// and in histories that are older than this field.
	ContentType string `json:"contentType,omitempty"`
}

// Received is what a client was answered.
type Received struct {
	Status     int     `json:"status,omitempty"` // HTTP status code; 0 if no response header arrived
	Reason     string  `json:"reason,omitempty"` // metav1.Status.Reason
	Message    string  `json:"message,omitempty"`
	Body       Body    `json:"body,omitempty"`
	Content    Content `json:"content,omitempty"`
	Missing    Missing `json:"missing,omitempty"`
	RetryAfter string  `json:"retryAfter,omitempty"`
	Failure    Failure `json:"failure,omitempty"`
	Error      string  `json:"error,omitempty"`

	Events int `json:"events,omitempty"` // watch: events received
	// Items counts the objects of a list by label; on the last page, the objects of all pages. More
	// is true if there are further pages.
	Items int  `json:"items,omitempty"`
	More  bool `json:"more,omitempty"`

	// Object identifies the object in the response: its resource version, a space and the hash of
	// the body, or of the body without times if the request is a write that changes nothing.
	// Headers are the headers of the response that a proxy must not change, one line each. Both are
	// recorded only for requests that the load sends to every server to compare the answers.
	Object  string `json:"object,omitempty"`
	Headers string `json:"headers,omitempty"`

	// MediaType is the media type of the response, without parameters; empty means JSON or none.
	MediaType string `json:"mediaType,omitempty"`

	ETag string `json:"etag,omitempty"`
	// Document is the Hash of the discovery document in the response; for a 304, of the one that
	// the client has. If the response could not be parsed, the history has no such Document, and
	// Message says why.
	Document string `json:"document,omitempty"`
}

// NewOperation returns an operation without any content, which shares nothing.
func NewOperation() Operation { return Operation{Sent: &Sent{}, Received: &Received{}} }

// Hop is one server's own record of an operation: an entry of its audit log. Hops share entries as
// operations share what they have in common: see [Operation]. Entry is never nil.
type Hop struct {
	Operation string `json:"operation"` // Operation.ID
	*Entry
	Start Time `json:"start"` // in audit logs, stage RequestReceived
	End   Time `json:"end"`   // in audit logs, stage ResponseComplete; equal to Start if that event is missing
}

// Entry is what a server writes about a request, except when.
type Entry struct {
	Server string `json:"server"`
	Status int    `json:"status,omitempty"`
	User   string `json:"user,omitempty"` // the user whom the server authenticated
	// Groups is a digest of that user's groups, in any order; UID is the user's UID; Extra is a
	// digest of the extra fields. If the writer knows them, Groups is not empty, and an empty UID
	// or Extra means that the user has none. If the writer does not know them, all three are empty.
	Groups string `json:"groups,omitempty"`
	UID    string `json:"uid,omitempty"`
	Extra  string `json:"extra,omitempty"`
	// Unauthenticated is the text that the server wrote when it could not authenticate the sender
	// of the request, such as "Authentication failed, attempted: x509". Such a hop has no user.
	// kube-apiserver audits such a request only at the stage ResponseStarted (k8s.io/apiserver,
	// pkg/endpoints/filters/authn_audit.go). The field is empty if the sender was authenticated,
	// and in histories that are older than this field.
	Unauthenticated string `json:"unauthenticated,omitempty"`
	// Client is the address of the client that sent the request to the first server, as the writer
	// knows it. It is empty if the writer does not know it, and in histories that are older than
	// this field.
	Client string `json:"client,omitempty"`
	// Rerouted is true if the user agent, source or headers show that the request came from a peer.
	Rerouted bool `json:"rerouted,omitempty"`
	// From is the server that forwarded the request, if the writer knows it. If it is empty,
	// readers infer it: the time of the forwarding server's hop contains the time of this hop.
	From string `json:"from,omitempty"`
	// Altered says how the request differs from the client's request, for people: the part of the
	// request, a colon and the difference, as in "query: without dryRun=All". Violations are
	// grouped by the text before the colon. It is empty if nothing differs or the writer does not
	// know.
	Altered string `json:"altered,omitempty"`
}
