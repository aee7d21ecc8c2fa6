// Package history is the ground floor of skewproof: an append-only record of everything that happened in
// a run. Backends, traffic and faults write it; invariants only read it. A history knows nothing of clusters and
// can be saved as JSON lines, read again and judged offline.
package history

import (
	"time"
)

// SchemaVersion names the layout of the records in this package. Readers refuse any other.
const SchemaVersion = "skewproof/history/v1alpha1"

// Time is an instant of a run: the monotonic duration since the run started. In the simulator it is virtual.
// The zero Time is the start of the run.
type Time = time.Duration

// Forever is the end of a window that was still open when the run ended.
const Forever = Time(1<<63 - 1)

// History is all that is known of one run. It is not safe for concurrent modification; while a run is under way
// records go through a [Recorder].
type History struct {
	Run        Run
	Operations []Operation
	Hops       []Hop
	Steps      []Step
	Faults     []Fault
	Lifecycle  []Lifecycle
	Served     []Served
	Effects    []Effect
	Lates      []Late
	Documents  map[string]Document // by Document.Hash
	End        End
}

// Run is the first record of every history: what was run, and what it is about.
type Run struct {
	Schema      string    `json:"schema"`
	Scenario    string    `json:"scenario"`
	Sentence    string    `json:"sentence,omitempty"` // what the scenario does, for a non-programmer
	Backend     string    `json:"backend"`
	Subject     string    `json:"subject"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Seed        uint64    `json:"seed"`
	QPS         float64   `json:"qps"` // requests per second asked for, over all servers
	StartedAt   time.Time `json:"startedAt"`
	Servers     []Server  `json:"servers"`
	About       []string  `json:"about"`    // invariants the scenario exists for: these may not stay inconclusive
	Pressure    Pressure  `json:"pressure"` // what must have happened for a verdict to count
	Bounds      Bounds    `json:"bounds"`
	Reproduce   string    `json:"reproduce"` // the command line that repeats the run
	Environment []string  `json:"environment,omitempty"`
	// External is true when the servers are not the run's own: nobody watches their processes, and no log of theirs is at hand.
	External bool `json:"external,omitempty"`
}

// Server is one apiserver of the run as it was first started.
type Server struct {
	Name    string   `json:"name"`
	ID      string   `json:"id,omitempty"` // apiserver identity, "apiserver-" + hash of the host name
	Version string   `json:"version"`
	Address string   `json:"address,omitempty"` // advertised host:port
	Args    []string `json:"args,omitempty"`
	// ProxyArgs are the arguments of the sidecar in front of it; empty if there is none.
	ProxyArgs []string `json:"proxyArgs,omitempty"`
}

// Pressure is the least that must have been put on the subject for a verdict to mean something. A zero field asks
// for nothing.
type Pressure struct {
	// Operations answered in the whole run.
	Operations int `json:"operations,omitempty"`
	// Skewed counts operations asked of a server that does not serve the resource itself while another live one does.
	Skewed int `json:"skewed,omitempty"`
	// Unreachable counts skewed operations whose every capable server was cut off from, or not answering, the server asked.
	Unreachable int `json:"unreachable,omitempty"`
	// Unserved counts operations on resources that no server serves.
	Unserved int `json:"unserved,omitempty"`
}

// Bounds are the times that the invariants allow. KEP-4020 speaks of "seconds"; these are our reading of it.
type Bounds struct {
	// Staleness is how long a server may be ignorant of what another one has begun (or ceased) to serve.
	Staleness time.Duration `json:"staleness"`
	// Unavailable is how long a request may take until it ends in 503 when no capable peer can be reached.
	Unavailable time.Duration `json:"unavailable"`
	// Convergence is how long after the last disturbance everything must be right again.
	Convergence time.Duration `json:"convergence"`
}

// DefaultBounds are used where a scenario sets none.
// Source: KEP-4020, "Service Level Objectives": discovery is stale for seconds, at worst single-digit minutes.
var DefaultBounds = Bounds{Staleness: 5 * time.Second, Unavailable: 30 * time.Second, Convergence: 20 * time.Second}

// GVR names a resource. The zero value means that an operation was not about a resource (discovery, health).
type GVR struct {
	Group    string `json:"group,omitempty"` // "" is the core group
	Version  string `json:"version,omitempty"`
	Resource string `json:"resource,omitempty"`
}

// String is "version/resource" in the core group and "group/version/resource" elsewhere, or as much of it as is named.
func (g GVR) String() string {
	switch {
	case g == GVR{}:
		return ""
	case g.Group == "":
		return g.Version + "/" + g.Resource
	case g.Version == "":
		return g.Group
	case g.Resource == "":
		return g.Group + "/" + g.Version
	default:
		return g.Group + "/" + g.Version + "/" + g.Resource
	}
}

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
	FailureCanceled Failure = "canceled" // the run ended or a step cancelled it: says nothing of the server
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

// Step is one executed step of the scenario.
type Step struct {
	Index    int    `json:"index"`
	Sentence string `json:"sentence"` // "replace a by v1.37.1"
	Start    Time   `json:"start"`
	End      Time   `json:"end"`
	Error    string `json:"error,omitempty"`
	// Disturbs is true when the step changes or harms the cluster: the invariants about quiet times and about
	// convergence count from the end of the last such step.
	Disturbs bool `json:"disturbs,omitempty"`
}

// Kinds of faults that are neither of a link nor of a process, but of how servers are set up.
const (
	// FaultMisconfiguration is a way that cannot work (From and To), or a server that is not set up as it should be (Server).
	FaultMisconfiguration = "misconfiguration"
	// FaultProxyOff is a Server whose Mixed Version Proxy a step has switched off: what that proxy is there for cannot be asked of it.
	FaultProxyOff = "proxy-off"
)

// Distrust says of a way on which servers must not talk to each other whose certificate is at fault. They have to refuse it themselves: nothing
// else keeps them from it. Empty is that none is.
type Distrust string

// Whose certificate is at fault.
const (
	// DistrustServing is that From cannot trust the certificate which To shows: nothing that From sends may reach To.
	DistrustServing Distrust = "serving"
	// DistrustFrontProxy is that To cannot trust the certificate by which From speaks for users: it refuses what From asks.
	DistrustFrontProxy Distrust = "front-proxy"
)

// Fault is one injected fault, written when it has been healed (or the run has ended) with what it really touched.
type Fault struct {
	ID   int    `json:"id"`
	Kind string `json:"kind"` // "cut", "latency", "timeout", "kill", "pause", …
	// From and To name the ends of the link that was interfered with; connections made by From to To are meant.
	// From is a server, "client" or ""; To is a server or "etcd".
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Server is set, instead of From and To, when the process itself was the target.
	Server string `json:"server,omitempty"`
	// Blocks is true when no response could get through the link while the fault was on (cut, black hole).
	Blocks bool   `json:"blocks,omitempty"`
	Detail string `json:"detail,omitempty"` // parameters, for people: "latency 200ms ±50ms downstream"
	// Distrust is set of a misconfiguration that is one of certificates, authorities or their names; of a Server, if that would not start with it.
	Distrust Distrust `json:"distrust,omitempty"`
	Start    Time     `json:"start"`
	End      Time     `json:"end"`
	Evidence Evidence `json:"evidence"`
}

// Bit reports whether the fault touched anything. Requests count for a fault of a process only: those that went over a
// link may well have gone over it unhindered, which is the opposite of what a cut is for.
func (f Fault) Bit() bool {
	e := f.Evidence
	touched := e.Refused+e.Cut+e.Affected+e.Seen > 0
	if f.Server != "" {
		return touched || e.Requests > 0
	}
	return touched
}

// Evidence is what a fault really touched; see [Fault.Bit] for what of it counts.
type Evidence struct {
	Refused   int   `json:"refused,omitempty"`   // connections turned away
	Cut       int   `json:"cut,omitempty"`       // established connections broken
	Affected  int   `json:"affected,omitempty"`  // connections that carried bytes through the fault
	BytesUp   int64 `json:"bytesUp,omitempty"`   // from From to To, in the window
	BytesDown int64 `json:"bytesDown,omitempty"` // from To to From, in the window
	Requests  int   `json:"requests,omitempty"`  // of a link: requests that went over it in the window; of a process: asked of it
	// Seen counts what else shows a misconfiguration to be real: an [Effect] that is as it must be with it.
	Seen int `json:"seen,omitempty"`
}

// Effect is what the configuration of one process of a server was seen to do, on the wire and in etcd, as opposed to what it was told. It is
// written when the process is about to end, of servers that were started with a setup of their own.
type Effect struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"`
	Setup       string `json:"setup,omitempty"` // what was out of the ordinary, in words
	// Certificate is the serving certificate that it showed: subject, issuer, serial number and end. Empty if none could be seen.
	Certificate string `json:"certificate,omitempty"`
	// Advertised is the host:port at which its endpoint lease told peers to find it. Empty if there was no lease.
	Advertised string `json:"advertised,omitempty"`
	Dials      []Dial `json:"dials,omitempty"` // who dialled it while it ran
}

// Dial is how often somebody connected to an address of a server.
type Dial struct {
	From        string `json:"from"` // a server, or "client"
	Address     string `json:"address"`
	Connections int    `json:"connections"`
}

// State is a state that an apiserver process enters.
type State string

// The states of an apiserver process.
const (
	StateStarting State = "starting" // the process was started
	StateReady    State = "ready"    // /readyz answered 200 for the first time in this incarnation
	StateStopping State = "stopping" // asked to stop gracefully
	StateStopped  State = "stopped"  // the process has ended as asked
	StateKilled   State = "killed"   // the process was killed by a step
	StatePaused   State = "paused"   // SIGSTOP
	StateResumed  State = "resumed"  // SIGCONT
	StateCrashed  State = "crashed"  // the process ended or panicked though nothing asked it to
)

// Lifecycle is a change of state of one server's process.
type Lifecycle struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"` // 1 for the first start, one more for each further one
	Version     string `json:"version"`     // what /version says once ready; before that, what was started
	// Emulates is the minor version, such as "1.36", that it is told to behave like, and once ready says that it does (--emulated-version); empty: its own.
	Emulates string `json:"emulates,omitempty"`
	State    State  `json:"state"`
	At       Time   `json:"at"`
	Detail   string `json:"detail,omitempty"` // exit status, last lines of the log
}

// Served is ground truth: from At on, this incarnation of the server served the Document by itself, as told by its own
// profile=nopeer discovery. It holds until the next Served of the same server, or until the process leaves.
type Served struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"`
	// Confirmed is when the previous document of this incarnation was last seen to hold; 0 in the first Served of an
	// incarnation, or where the writer does not know (then At is taken as exact). Between Confirmed and At the server
	// went over from the one to the other, nobody knows when.
	Confirmed Time   `json:"confirmed,omitempty"`
	Document  string `json:"document"` // Document.Hash
}

// Late is a question that the run put to a server directly, around all links and faults, and that waited long for its answer or never got one.
// Where that befalls all servers at once, or the server's process was kept from running, the machine does not keep up.
type Late struct {
	Server string `json:"server"`
	Start  Time   `json:"start"`
	End    Time   `json:"end"`
	// Queued is for how long threads of the server's processes were able to run meanwhile, and no processor did; of several threads the sum. 0 where
	// that is not known.
	Queued time.Duration `json:"queued,omitempty"`
}

// Document is one discovery document in the form that invariants compare.
type Document struct {
	Hash  string `json:"hash"`  // of the exact bytes of the response body, "sha256:…"
	Bytes int    `json:"bytes"` // length of the response body
	// Resources in the order of the document.
	Resources []Resource `json:"resources"`
}

// Resource is one line of a discovery document.
type Resource struct {
	GVR
	Kind         string        `json:"kind,omitempty"`
	Namespaced   bool          `json:"namespaced,omitempty"`
	Verbs        []string      `json:"verbs,omitempty"`
	Subresources []Subresource `json:"subresources,omitempty"`
}

// Subresource is a subresource of a Resource.
type Subresource struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind,omitempty"`
	Verbs []string `json:"verbs,omitempty"`
}

// End is the last record. A history without it was cut short.
type End struct {
	At Time `json:"at"`
	// Error is why the run ended early; empty when every step was carried out.
	Error string `json:"error,omitempty"`
	// Complete is false in a history whose End record is missing.
	Complete bool `json:"complete"`
}
