package history

// Body says what kind of body a response carried: enough to tell what a status code was about.
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

// Content says whether a body is what its media type says: JSON, CBOR or the protobuf envelope, from beginning to end.
type Content string

// What was seen of a body.
const (
	ContentUnknown Content = ""       // nobody looked: no body, a stream, a type without such a form, or a history older than the field
	ContentWhole   Content = "whole"  // it can be decoded
	ContentBroken  Content = "broken" // it cannot, though HTTP says that it is complete
)

// Missing says what a 404 was about. Only MissingResource can be a false 404.
type Missing string

// What a 404 can be about.
const (
	MissingNothing  Missing = ""         // the response was not a 404
	MissingObject   Missing = "object"   // the resource is served here, the named object (or namespace) does not exist
	MissingResource Missing = "resource" // the server does not know the resource, group or version
)

// Failure says why an operation got no (complete) response.
type Failure string

// Why an operation got no complete response.
const (
	FailureNone     Failure = ""
	FailureRefused  Failure = "refused"  // the connection was refused
	FailureReset    Failure = "reset"    // the connection was reset or closed before the response was complete
	FailureTimeout  Failure = "timeout"  // the client gave up waiting
	FailureTLS      Failure = "tls"      // the TLS handshake failed for a reason other than the ones above
	FailureCanceled Failure = "canceled" // the run ended or cancelled it, or did not send it in time: says nothing of the server
	FailureOther    Failure = "other"
)

// Verbs used in Operation.Verb beside those of the API ("get", "list", "create", "update", "patch", "delete", "watch").
const (
	VerbDiscovery = "discovery" // GET /apis or /api in aggregated form, merged view
	VerbTable     = "table"     // a list asked for as a Table
	VerbNoPeer    = "nopeer"    // GET /apis or /api in aggregated form with profile=nopeer: the server's own view
	VerbLegacy    = "legacy"    // GET /apis or /api in any older format; the Document lists the group versions
	VerbOpenAPI   = "openapi"   // GET /openapi/v2 or /openapi/v3; the Document lists the group versions that are described
)

// Purpose says why an operation was made.
type Purpose string

// Why an operation was made.
const (
	PurposeLoad  Purpose = "load"  // the background traffic
	PurposeSweep Purpose = "sweep" // a visit of everything that discovery lists
)

// Operation is one request as its client saw it.
type Operation struct {
	// ID is unique in the run and is sent as the Audit-ID, which is how audit logs are joined in (see Hop).
	ID          string  `json:"id"`
	Purpose     Purpose `json:"purpose"`
	Client      string  `json:"client"` // which client sent it, such as "dynamic"
	User        string  `json:"user"`   // the identity it was sent as
	Server      string  `json:"server"` // the server that was asked
	Verb        string  `json:"verb"`
	GVR         GVR     `json:"gvr,omitzero"`
	Subresource string  `json:"subresource,omitempty"`
	Namespace   string  `json:"namespace,omitempty"`
	Name        string  `json:"name,omitempty"`
	Path        string  `json:"path"` // path and query as sent
	// Rerouted is true when the client itself says, by the header of the hop, that a peer has passed the request on.
	Rerouted bool `json:"rerouted,omitempty"`

	Start Time `json:"start"`
	End   Time `json:"end"`

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
	// Items of a list by label; on its last page those of all pages. More is true if there are further pages.
	Items int  `json:"items,omitempty"`
	More  bool `json:"more,omitempty"`

	// Accept is what media types the client takes, as it said; empty is JSON, or anything. MediaType is that of the answer, without
	// parameters; empty is JSON, or none.
	Accept    string `json:"accept,omitempty"`
	MediaType string `json:"mediaType,omitempty"`

	ETag string `json:"etag,omitempty"`
	// Document is, of discovery, the Hash of the Document that was answered; of a 304 that of the one that the client has already. Where the history
	// holds no such Document because the answer could not be read as one, Message says why.
	Document string `json:"document,omitempty"`
}

// Hop is one server's own account of an operation it handled: its audit log, or the access log of the sidecar in front of it.
type Hop struct {
	Operation string `json:"operation"` // Operation.ID
	Server    string `json:"server"`
	Start     Time   `json:"start"` // in audit logs, stage RequestReceived
	End       Time   `json:"end"`   // in audit logs, stage ResponseComplete; equal to Start if that event is missing
	Status    int    `json:"status,omitempty"`
	User      string `json:"user,omitempty"` // the user the server saw
	// Groups is a digest of that user's groups, in any order, UID what it is known by beside its name, and Extra a digest of whatever else is said of
	// it. All three are empty where the writer does not know; where it does, Groups is not, and an empty UID or Extra is that there is none.
	Groups string `json:"groups,omitempty"`
	UID    string `json:"uid,omitempty"`
	Extra  string `json:"extra,omitempty"`
	// Rerouted is true when the user agent, source or headers show that the request came from a peer.
	Rerouted bool `json:"rerouted,omitempty"`
	// From is the server that passed it on, where the writer knows: then it need not be inferred from what contains what.
	From string `json:"from,omitempty"`
	// Altered is what the server was asked differently from what the client asked, for people: which part of the request, a colon
	// and the difference, as in "query: without dryRun=All". What is before the colon groups like violations. Empty if nothing is
	// different, or if the writer cannot tell.
	Altered string `json:"altered,omitempty"`
}
