package history

// Step is one executed step of the scenario.
type Step struct {
	Index    int    `json:"index"`
	Sentence string `json:"sentence"` // "replace a by v1.37.1"
	Start    Time   `json:"start"`
	End      Time   `json:"end"`
	Error    string `json:"error,omitempty"`
	// Refused says why the control plane did not accept the step, such as a definition whose names
	// are taken, or why an optional step was not possible. This is no failure of the run, and no
	// fault.
	Refused string `json:"refused,omitempty"`
	// Effect says what the step did, where the step alone does not say so: "etcd compacted at
	// revision 812".
	Effect string `json:"effect,omitempty"`
	// Disturbs is true if the step changes the cluster or injects a fault. Steady state and
	// convergence are measured from the end of the last such step.
	Disturbs bool `json:"disturbs,omitempty"`
	// Defined is the definition that the step created, changed or deleted. It is nil for other
	// steps, and in histories that are older than this field.
	Defined *Definition `json:"defined,omitempty"`
	// LeaseOf is the server whose identity lease the step deleted. Its peers take the server for
	// gone until it writes the lease again. It is empty for other steps, and in histories that are
	// older than this field.
	LeaseOf string `json:"leaseOf,omitempty"`
	// Discovery says that the step changed whether servers may read the discovery of their peers.
	// Before the first such step they may.
	Discovery Discovery `json:"discovery,omitempty"`
}

// Discovery is a change of the rights of servers to read the discovery of their peers.
type Discovery string

// These are the changes.
const (
	DiscoveryWithdrawn Discovery = "withdrawn"
	DiscoveryGranted   Discovery = "granted"
)

// Definition is what an administrator defined: a custom resource, or a resource of an aggregated
// API.
type Definition struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	// Versions are all versions that the definition lists after the step, served or not. If the
	// step was refused, they are those that it asked for. It is empty if the step deleted the
	// definition.
	Versions []string `json:"versions,omitempty"`
	// Aggregated is true for an aggregated API, and false for a custom resource.
	Aggregated bool `json:"aggregated,omitempty"`
}

// Kinds of faults that are not in a link and not in a process.
const (
	// FaultMisconfiguration is a wrong configuration. It breaks the link between From and To, or
	// the server Server.
	FaultMisconfiguration = "misconfiguration"
	// FaultBreakDiscovery makes the peers' fetches of a server's discovery fail.
	FaultBreakDiscovery = "break-discovery"
	// FaultProxyOff means that a step has switched off the Mixed Version Proxy of Server, or has put
	// that of its release in its place.
	FaultProxyOff = "proxy-off"
)

// DetailUnroutable is the detail of a misconfiguration in which a server advertises an address from
// which no answer comes. A peer that connects to it waits until its own timeout.
const DetailUnroutable = "no way leads to the address advertised"

// Distrust names the certificate that makes a misconfigured link untrusted. Only the servers
// themselves reject the requests on such a link. Distrust is empty if certificates are not the
// problem.
type Distrust string

// The certificates that can be at fault.
const (
	// DistrustServing means that From must not trust the serving certificate of To, and so must not
	// send it any request.
	DistrustServing Distrust = "serving"
	// DistrustFrontProxy means that To must not trust the front-proxy certificate of From, and so
	// must reject the users that From names.
	DistrustFrontProxy Distrust = "front-proxy"
)

// Fault is one injected fault. It is recorded when it is healed, or at the end of the run, so that
// its evidence is complete.
type Fault struct {
	ID   int    `json:"id"`
	Kind string `json:"kind"` // "cut", "latency", "timeout", "kill", "pause", …
	// From and To are the ends of the faulty link, which carries the connections that From makes to
	// To. From is a server, "client" or "" (everybody); To is a server or "etcd".
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Server is set instead of From and To if the fault is in a process.
	Server string `json:"server,omitempty"`
	// Blocks is true if no response could get through the link while the fault was on (cut, black
	// hole).
	Blocks bool   `json:"blocks,omitempty"`
	Detail string `json:"detail,omitempty"` // parameters, for people: "latency 200ms ±50ms downstream"
	// Distrust is set for a misconfiguration of certificates, of authorities or of their names. If
	// Server is set too, that server refused to start with it.
	Distrust Distrust `json:"distrust,omitempty"`
	Start    Time     `json:"start"`
	End      Time     `json:"end"`
	Evidence Evidence `json:"evidence"`
}

// Effective reports whether the fault had any effect. Requests count only for a fault in a process,
// because a faulty link may let a request pass unharmed.
func (f Fault) Effective() bool {
	e := f.Evidence
	return e.Refused+e.Cut+e.Affected+e.Seen > 0 || f.Server != "" && e.Requests > 0
}

// Evidence is the observed effect of a fault. [Fault.Effective] says which fields count.
type Evidence struct {
	Refused   int   `json:"refused,omitempty"`   // connections refused
	Cut       int   `json:"cut,omitempty"`       // established connections broken
	Affected  int   `json:"affected,omitempty"`  // connections that carried bytes through the fault
	BytesUp   int64 `json:"bytesUp,omitempty"`   // from From to To, while the fault was on
	BytesDown int64 `json:"bytesDown,omitempty"` // from To to From, while the fault was on
	// Requests counts the requests that were in progress while the fault was on, over the link or
	// to the process.
	Requests int `json:"requests,omitempty"`
	// Seen counts the Effects that confirm a misconfiguration.
	Seen int `json:"seen,omitempty"`
}

// Effect is the observed effect of the configuration of one server process, on the wire and in
// etcd. (The content of the flags is a [Configuration].) It is recorded shortly before the process
// ends, and only for servers that were started with their own setup.
type Effect struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"`
	Setup       string `json:"setup,omitempty"` // the unusual settings, for people
	// Certificate is the serving certificate that the server presented: subject, issuer, serial
	// number and expiry. It is empty if none was seen.
	Certificate string `json:"certificate,omitempty"`
	// Advertised is the host:port in the server's endpoint lease. It is empty if there was no
	// lease.
	Advertised string `json:"advertised,omitempty"`
	Dials      []Dial `json:"dials,omitempty"` // connections made to the process
}

// Dial is how often From connected to one address of a server.
type Dial struct {
	From        string `json:"from"` // a server, or "client"
	Address     string `json:"address"`
	Connections int    `json:"connections"`
}
