package history

// Proxy is which Mixed Version Proxy the flags of a server switch on.
type Proxy string

// The proxies of a server.
const (
	ProxyUnknown Proxy = ""        // the writer cannot tell
	ProxyOff     Proxy = "off"     // the feature gate is off, and there is no sidecar
	ProxyOwn     Proxy = "own"     // the feature gate of the kube-apiserver is on
	ProxySidecar Proxy = "sidecar" // a sidecar stands in front of the kube-apiserver
)

// Configuration is what the flags of one server process say, as data, as opposed to what the
// process does ([Lease], Lifecycle.Reports, Hops, Served). It is recorded when the process is
// started. An empty field means that no flag says so.
type Configuration struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"`
	Setup       string `json:"setup,omitempty"` // what is out of the ordinary, for people
	Proxy       Proxy  `json:"proxy,omitempty"`
	// PeerCA is the file name of --peer-ca-file, without its directory.
	PeerCA string `json:"peerCA,omitempty"`
	// PeerIP is --peer-advertise-ip, PeerPort --peer-advertise-port, AdvertiseIP --advertise-address
	// and Port --secure-port: of the sidecar, if there is one.
	PeerIP      string `json:"peerIP,omitempty"`
	PeerPort    string `json:"peerPort,omitempty"`
	AdvertiseIP string `json:"advertiseIP,omitempty"`
	Port        string `json:"port,omitempty"`
	// Emulates is the minor version of --emulated-version, such as "1.36".
	Emulates string `json:"emulates,omitempty"`
	// Without are the group versions that --runtime-config switches off, such as "batch/v1"; sorted.
	Without []string `json:"without,omitempty"`
	// SharesHost is another server with the same host name, and so with the same identity.
	SharesHost string `json:"sharesHost,omitempty"`
}

// Lease is what the endpoint lease of a server said, by which its peers find it. The lease was
// looked at again and again between First and Last, and always said the same; how it was before and
// after that, other Leases tell. Between two of them nothing is known.
type Lease struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"` // that was ready meanwhile
	First       Time   `json:"first"`
	Last        Time   `json:"last"`
	// Advertised is the host:port in the lease. It is empty if there was no lease, or an expired
	// one.
	Advertised string `json:"advertised,omitempty"`
}
