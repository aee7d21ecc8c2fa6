// Package history is the append-only record of everything that happened in a run. Backends, the
// load and faults write it; invariants only read it. It does not depend on a cluster: a history can
// be saved as JSON lines, read again and judged offline.
package history

import "time"

// SchemaVersion names the layout of the records in this package. Readers reject any other version.
const SchemaVersion = "skewproof/history/v1alpha1"

// Time is an instant of a run: the monotonic time since the run started, which is virtual in the
// simulator. The zero Time is the start of the run.
type Time = time.Duration

// Forever is the end of everything that was still in progress when the run ended.
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
	// in histories that are older than these records.
	Configurations []Configuration
	Leases         []Lease
	SlowProbes     []SlowProbe
	// Crowds are empty in histories of runs without a step that starts one.
	Crowds []Crowd
	// Counted is empty in histories of runs without load, and in histories that are older than this
	// record.
	Counted []Counted
	// Objects and Requests are empty in histories of runs without controllers. Objects are in the
	// order of their revisions.
	Objects  []Object
	Requests []Request
	// Written is empty in histories of runs without workloads.
	Written []Written
	// Deliveries are empty in histories of runs without informers.
	Deliveries []Delivery
	Documents  map[string]Document // by Document.Hash
	End        End
}

// Run is the first record of every history. It describes the run.
type Run struct {
	Schema    string    `json:"schema"`
	Scenario  string    `json:"scenario"`
	Sentence  string    `json:"sentence,omitempty"` // what the scenario does, for people
	Backend   string    `json:"backend"`
	Subject   string    `json:"subject"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Seed      uint64    `json:"seed"`
	QPS       float64   `json:"qps"` // intended requests per second, over all servers
	StartedAt time.Time `json:"startedAt"`
	Servers   []Server  `json:"servers"`
	About     []string  `json:"about"` // invariants that the scenario tests: they must not be inconclusive
	// Control are the invariants that the run must violate, because its subject is the one on which
	// its scenario must fail. Empty: the run is no negative control.
	Control     []string `json:"control,omitempty"`
	Pressure    Pressure `json:"pressure"` // the minimum load for which a verdict counts
	Bounds      Bounds   `json:"bounds"`
	Reproduce   string   `json:"reproduce"` // the command line that repeats the run
	Environment []string `json:"environment,omitempty"`
	// Own are flags of the user's own for every kube-apiserver; nil if there are none.
	Own *OwnFlags `json:"own,omitempty"`
	// Label is the user's name for the tested system; empty if the user gave no name.
	Label string `json:"label,omitempty"`
	// Binaries are the program files that the run started. Only the backend local has such files.
	Binaries []Binary `json:"binaries,omitempty"`
	// External is true if skewproof did not start the servers. Then the history has neither their
	// logs nor the states of their processes.
	External bool `json:"external,omitempty"`
	// Unnamed are servers of the cluster that the run did not ask: names or addresses, for people.
	// Nothing is known of them.
	Unnamed []string `json:"unnamed,omitempty"`
	// Unjudged is the reason why the run can neither pass nor fail, whatever is recorded: the run
	// was made so that the user can look at the cluster. Empty: the run is judged.
	Unjudged string `json:"unjudged,omitempty"`
}

// Binary identifies a program that a run started.
type Binary struct {
	// Component is "kube-apiserver" or "etcd". Version is the release that the binary represents in
	// the run.
	Component string `json:"component"`
	Version   string `json:"version"`
	// Says is the first line of its output with --version.
	Says string `json:"says"`
	// SHA256 is the SHA-256 of the file, in hex.
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
	// ProxyArgs are only in older histories: the arguments of a proxy in front of the server.
	ProxyArgs []string `json:"proxyArgs,omitempty"`
}

// Pressure is the minimum load on the subject for which a verdict counts. Each field counts one
// class of requests or objects; a request may be in several classes. A zero field demands nothing.
//
// A *skewed* request is a request to a server that does not serve the resource itself, while
// another live server does.
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
	// PassedOn counts operations that a second server handled, according to the servers' own logs.
	PassedOn int `json:"passedOn,omitempty"`
	// Writes counts skewed writes that succeeded. Dry runs do not count.
	Writes int `json:"writes,omitempty"`
	// Subresources counts answered skewed operations on a subresource that the asked server does
	// not serve, of a resource that it does serve.
	Subresources int `json:"subresources,omitempty"`
	// Watches counts skewed watches that were established and delivered an event. Upgrades counts
	// such watches on an upgraded connection (101); they do not count as Watches.
	Watches  int `json:"watches,omitempty"`
	Upgrades int `json:"upgrades,omitempty"`
	// Lists counts skewed lists by label that were read to the last page.
	Lists int `json:"lists,omitempty"`
	// Formats counts skewed operations that succeeded with a body whose media type is not JSON.
	Formats int `json:"formats,omitempty"`
	// ForgedHops counts answered operations with a forged hop header, on resources that the asked
	// server does not serve.
	ForgedHops int `json:"forgedHops,omitempty"`
	// MergedDocuments counts merged discovery documents that clients received, or that a 304
	// confirmed.
	MergedDocuments int `json:"mergedDocuments,omitempty"`
	// OwnDocuments counts discovery documents with profile=nopeer that clients received.
	OwnDocuments int `json:"ownDocuments,omitempty"`
	// LegacyDocuments counts discovery documents in older formats that clients received.
	LegacyDocuments int `json:"legacyDocuments,omitempty"`
	// Descriptions counts OpenAPI descriptions that clients received.
	Descriptions int `json:"descriptions,omitempty"`
	// Owners counts objects in etcd whose owner was in etcd too.
	Owners int `json:"owners,omitempty"`
	// Events counts the events that informers received about resources that the asked server did
	// not serve itself.
	Events int `json:"events,omitempty"`
}

// Bounds are the times that the invariants allow. KEP-4020 says "seconds"; the bounds are our
// interpretation.
type Bounds struct {
	// Staleness is how long a server may not know that another server has started or stopped to
	// serve a resource.
	Staleness time.Duration `json:"staleness"`
	// Unavailable is the maximum time until a request ends in 503 if no capable peer can be
	// reached.
	Unavailable time.Duration `json:"unavailable"`
	// Convergence is how long answers may still be wrong after the last disturbance.
	Convergence time.Duration `json:"convergence"`
	// Collection is how long after the last disturbance controllers may take to delete the
	// dependents of a deleted owner, or the contents of a deleted namespace. The garbage collector
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

// String returns "version/resource" in the core group and "group/version/resource" in others,
// without the parts that are empty.
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
	// StateDrained means that the process, which had been asked to stop, answered its direct probe
	// at least until now.
	StateDrained State = "drained"
	StateStopped State = "stopped" // the process has stopped gracefully
	StateKilled  State = "killed"  // a step killed the process
	StatePaused  State = "paused"  // SIGSTOP
	StateResumed State = "resumed" // SIGCONT
	StateCrashed State = "crashed" // the process ended or panicked by itself
)

// Lifecycle is a change of state of one server's process.
type Lifecycle struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"` // 1 for the first start, 2 for the second, …
	Version     string `json:"version"`     // of the binary; once ready, as reported at /version
	// Emulates is the minor version, such as "1.36", that the server emulates (--emulated-version).
	// It is empty if the server emulates none.
	Emulates string `json:"emulates,omitempty"`
	// Reports is the emulated minor version, such as "1.36", that the server reported at /version
	// when it became ready. It is empty if the server reported none, as older versions do, or was
	// not asked.
	Reports string `json:"reports,omitempty"`
	State   State  `json:"state"`
	At      Time   `json:"at"`
	Detail  string `json:"detail,omitempty"` // exit status, last lines of the log
}

// Served is ground truth: from At on, this incarnation of the server served Document itself,
// according to its discovery with profile=nopeer. It is valid until the next Served of the same
// server, or until the process ends.
type Served struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"`
	// Confirmed is when the previous document of this incarnation was last seen. The change
	// happened at an unknown time between Confirmed and At. Confirmed is 0 in the first Served of
	// an incarnation, and if the writer does not know it. Then At is taken as the exact time.
	Confirmed Time   `json:"confirmed,omitempty"`
	Document  string `json:"document"` // Document.Hash
}

// SlowProbe is a probe that took long or got no answer. A probe is a request that the run itself
// sends to a server, past all links and faults. If the probes of all servers are slow at once, the
// machine is overloaded. The same is true if a probe is slow because its server got no CPU. If the
// harness itself got no CPU, or the clock of the machine jumped, a slow probe of every server is
// recorded for that time.
type SlowProbe struct {
	Server string `json:"server"`
	Start  Time   `json:"start"`
	End    Time   `json:"end"`
	// Queued is how long threads of the server were runnable without getting a CPU during the
	// probe, summed over its threads. It is 0 if unknown.
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
