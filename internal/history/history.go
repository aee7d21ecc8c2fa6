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
// Where that befalls all servers at once, or the server's process was kept from running, the machine does not keep up. The same is
// written down of every server for a time in which the harness was not let run itself, or the clock of the machine leapt.
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
