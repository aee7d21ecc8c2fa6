package history

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
	Requests  int   `json:"requests,omitempty"`  // of a link: requests that went over it in the window; of a process: those to it that were under way in the window
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
