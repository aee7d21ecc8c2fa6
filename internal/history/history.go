// Package history is the append-only record of everything that happened in a run. Backends, the
// load and faults write it; invariants only read it. It does not depend on any cluster: a history
// can be saved as JSON lines, read again and judged offline.
package history

import "time"

// SchemaVersion names the layout of the records in this package. Readers refuse any other.
const SchemaVersion = "skewproof/history/v1alpha1"

// Time is an instant of a run: the monotonic time since the run started, which is virtual in the
// simulator. The zero Time is the start of the run.
type Time = time.Duration

// Forever is the end of what was still going on when the run ended.
const Forever = Time(1<<63 - 1)

// History is everything that is known about one run. It is not safe for concurrent modification;
// during a run, records go through a [Recorder].
type History struct {
	Run        Run
	Operations []Operation
	Hops       []Hop
	Steps      []Step
	Faults     []Fault
	Lifecycle  []Lifecycle
	Served     []Served
	Effects    []Effect
	// Configurations and Leases are empty in histories of servers that skewproof did not start, and
	// in those that were written before there were such records.
	Configurations []Configuration
	Leases         []Lease
	SlowProbes     []SlowProbe
	// Objects and Requests are empty in histories of runs without controllers. Objects are in the
	// order of their revisions.
	Objects  []Object
	Requests []Request
	// Deliveries are empty in histories of runs without informers.
	Deliveries []Delivery
	Documents  map[string]Document // by Document.Hash
	End        End
}

// Run is the first record of every history. It describes the run.
type Run struct {
	Schema      string    `json:"schema"`
	Scenario    string    `json:"scenario"`
	Sentence    string    `json:"sentence,omitempty"` // what the scenario does, for people
	Backend     string    `json:"backend"`
	Subject     string    `json:"subject"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Seed        uint64    `json:"seed"`
	QPS         float64   `json:"qps"` // intended requests per second, over all servers
	StartedAt   time.Time `json:"startedAt"`
	Servers     []Server  `json:"servers"`
	About       []string  `json:"about"`    // invariants that the scenario tests: they must not stay inconclusive
	Pressure    Pressure  `json:"pressure"` // the least load for which a verdict counts
	Bounds      Bounds    `json:"bounds"`
	Reproduce   string    `json:"reproduce"` // the command line that repeats the run
	Environment []string  `json:"environment,omitempty"`
	// Label is what the user calls what is tested; empty if no name was given.
	Label string `json:"label,omitempty"`
	// Binaries are the programs that the run started, where they are files: on the backend local.
	Binaries []Binary `json:"binaries,omitempty"`
	// External is true if skewproof did not start the servers. It has neither their logs nor any
	// knowledge of their processes then.
	External bool `json:"external,omitempty"`
	// Unjudged is why the run can neither pass nor fail, whatever is recorded: it was made for
	// somebody to look at the cluster. Empty: the run is judged.
	Unjudged string `json:"unjudged,omitempty"`
}

// Binary identifies a program that a run started.
type Binary struct {
	// Component is "kube-apiserver" or "etcd", and Version the release that it stands for in the run.
	Component string `json:"component"`
	Version   string `json:"version"`
	// Says is the first line of what it prints with --version.
	Says string `json:"says"`
	// SHA256 is that of the file, in hex.
	SHA256 string `json:"sha256"`
	// Own is true if the user gave the file (--binary).
	Own bool `json:"own,omitempty"`
}

// Server is one apiserver of the run, as it was first started.
type Server struct {
	Name    string   `json:"name"`
	ID      string   `json:"id,omitempty"` // apiserver identity, "apiserver-" + hash of the host name
	Version string   `json:"version"`
	Address string   `json:"address,omitempty"` // advertised host:port
	Args    []string `json:"args,omitempty"`
	// ProxyArgs are the arguments of the server's sidecar; empty if it has none.
	ProxyArgs []string `json:"proxyArgs,omitempty"`
}

// Pressure is the least load on the subject for which a verdict counts. Each field counts one class
// of requests or objects; one may be in several. A zero field demands nothing.
//
// A *skewed* request is one to a server that does not serve the resource itself while another live
// server does.
type Pressure struct {
	// Operations counts all answered operations.
	Operations int `json:"operations,omitempty"`
	// Skewed counts skewed operations.
	Skewed int `json:"skewed,omitempty"`
	// Unreachable counts skewed operations for which the asked server could reach no capable
	// server.
	Unreachable int `json:"unreachable,omitempty"`
	// Unserved counts operations on resources that no server serves.
	Unserved int `json:"unserved,omitempty"`
	// PassedOn counts operations that a second server handled, by the servers' own logs.
	PassedOn int `json:"passedOn,omitempty"`
	// Writes counts skewed writes that succeeded. Dry runs do not count.
	Writes int `json:"writes,omitempty"`
	// Subresources counts answered skewed operations on a subresource that the asked server lacks,
	// of a resource that it serves.
	Subresources int `json:"subresources,omitempty"`
	// Watches counts skewed watches that were established and delivered an event, and Upgrades
	// those of them that are on an upgraded connection (101), which do not count as Watches.
	Watches  int `json:"watches,omitempty"`
	Upgrades int `json:"upgrades,omitempty"`
	// Lists counts skewed lists by label that were read to their end.
	Lists int `json:"lists,omitempty"`
	// Formats counts skewed operations that succeeded with a body in another media type than JSON.
	Formats int `json:"formats,omitempty"`
	// ForgedHops counts answered operations with a forged header of a hop, on what the asked server
	// does not serve.
	ForgedHops int `json:"forgedHops,omitempty"`
	// MergedDocuments counts merged discovery documents that clients got, or that a 304 confirmed.
	MergedDocuments int `json:"mergedDocuments,omitempty"`
	// OwnDocuments counts discovery documents with profile=nopeer that clients got.
	OwnDocuments int `json:"ownDocuments,omitempty"`
	// LegacyDocuments counts discovery documents in older formats that clients got.
	LegacyDocuments int `json:"legacyDocuments,omitempty"`
	// Descriptions counts OpenAPI descriptions that clients got.
	Descriptions int `json:"descriptions,omitempty"`
	// Owners counts objects in etcd with an owner that etcd had as well.
	Owners int `json:"owners,omitempty"`
	// Events counts the events that informers got of resources that the asked server did not serve
	// itself.
	Events int `json:"events,omitempty"`
}

// Bounds are the times that the invariants allow. KEP-4020 says "seconds"; these are our reading of
// it.
type Bounds struct {
	// Staleness is how long a server may not know what another server has begun, or ceased, to
	// serve.
	Staleness time.Duration `json:"staleness"`
	// Unavailable is how long a request may take to end in 503 if no capable peer can be reached.
	Unavailable time.Duration `json:"unavailable"`
	// Convergence is how long after the last disturbance answers may still be wrong.
	Convergence time.Duration `json:"convergence"`
	// Collection is how long after the last disturbance controllers may take to delete what has to
	// go: dependents of an owner that is gone, the contents of a namespace. The garbage collector
	// looks for new resources every 30 seconds. 0 in histories of older runs.
	Collection time.Duration `json:"collection,omitempty"`
}

// DefaultBounds are used if a scenario sets none. Source: KEP-4020, "Service Level Objectives":
// discovery is stale for seconds, at worst single-digit minutes.
var DefaultBounds = Bounds{Staleness: 5 * time.Second, Unavailable: 30 * time.Second, Convergence: 20 * time.Second, Collection: time.Minute}

// GVR names a resource. It is zero for an operation that is not about a resource (discovery,
// health).
type GVR struct {
	Group    string `json:"group,omitempty"` // "" is the core group
	Version  string `json:"version,omitempty"`
	Resource string `json:"resource,omitempty"`
}

// String is "version/resource" in the core group and "group/version/resource" in others, without
// the parts that are empty.
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

// State is a state of an apiserver process.
type State string

// The states of an apiserver process.
const (
	StateStarting State = "starting" // the process was started
	StateReady    State = "ready"    // /readyz answered 200 for the first time in this incarnation
	StateStopping State = "stopping" // a step asked the process to stop gracefully
	StateStopped  State = "stopped"  // the process has stopped gracefully
	StateKilled   State = "killed"   // a step killed the process
	StatePaused   State = "paused"   // SIGSTOP
	StateResumed  State = "resumed"  // SIGCONT
	StateCrashed  State = "crashed"  // the process ended or panicked by itself
)

// Lifecycle is a change of state of one server's process.
type Lifecycle struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"` // 1 for the first start, 2 for the second, …
	Version     string `json:"version"`     // of the binary; once ready, as /version says
	// Emulates is the minor version, such as "1.36", that the server emulates (--emulated-version).
	// It is empty if the server emulates none.
	Emulates string `json:"emulates,omitempty"`
	// Reports is the minor version, such as "1.36", that the server said at /version to emulate when
	// it became ready. It is empty if the server says none, as older versions do, or was not asked.
	Reports string `json:"reports,omitempty"`
	State   State  `json:"state"`
	At      Time   `json:"at"`
	Detail  string `json:"detail,omitempty"` // exit status, last lines of the log
}

// Served is ground truth: from At on, this incarnation of the server served Document itself, as its
// discovery with profile=nopeer says. It holds until the next Served of the same server, or until
// the process ends.
type Served struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"`
	// Confirmed is when the previous document of this incarnation was last seen. The change
	// happened at an unknown time between Confirmed and At. It is 0 in the first Served of an
	// incarnation, and if the writer does not know; At is exact then.
	Confirmed Time   `json:"confirmed,omitempty"`
	Document  string `json:"document"` // Document.Hash
}

// SlowProbe is a probe (a request that the run itself sends to a server, around all links and
// faults) that took long or got no answer. Slow probes of all servers at once show that the machine
// is overloaded, and so does one whose server got no CPU. If the harness itself got no CPU, or the
// clock of the machine jumped, a slow probe of every server is recorded for that time.
type SlowProbe struct {
	Server string `json:"server"`
	Start  Time   `json:"start"`
	End    Time   `json:"end"`
	// Queued is how long threads of the server were runnable meanwhile without getting a CPU,
	// summed over its threads. It is 0 if unknown.
	Queued time.Duration `json:"queued,omitempty"`
}

// Document is a discovery document in the form that invariants compare.
type Document struct {
	Hash  string `json:"hash"`  // of the exact bytes of the response body, "sha256:…"
	Bytes int    `json:"bytes"` // length of the response body
	// Resources are in the order of the document.
	Resources []Resource `json:"resources"`
}

// Resource is one resource in a discovery document.
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

// End is the last record. A history without it is truncated.
type End struct {
	At Time `json:"at"`
	// Error is why the run ended early; it is empty if every step was executed.
	Error string `json:"error,omitempty"`
	// Complete is false if the history has no End record.
	Complete bool `json:"complete"`
}
