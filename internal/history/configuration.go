package history

// Proxy says which Mixed Version Proxy the flags of a server switch on.
type Proxy string

// The proxies of a server.
const (
	ProxyUnknown Proxy = ""    // the writer cannot tell
	ProxyOff     Proxy = "off" // the feature gate is off
	ProxyOwn     Proxy = "own" // the feature gate is on
)

// Configuration is the content of the flags of one server process, as data. The behaviour of the
// process is in other records ([Lease], Lifecycle.Reports, Hops, Served). A Configuration is
// recorded when the process is started. An empty field means that no flag sets it.
type Configuration struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"`
	At          Time   `json:"at"`
	Setup       string `json:"setup,omitempty"` // the unusual settings, for people
	Proxy       Proxy  `json:"proxy,omitempty"`
	// PeerCA is the file name of --peer-ca-file, without its directory.
	PeerCA string `json:"peerCA,omitempty"`
	// PeerIP is --peer-advertise-ip, PeerPort is --peer-advertise-port, AdvertiseIP is
	// --advertise-address, and Port is --secure-port.
	PeerIP      string `json:"peerIP,omitempty"`
	PeerPort    string `json:"peerPort,omitempty"`
	AdvertiseIP string `json:"advertiseIP,omitempty"`
	Port        string `json:"port,omitempty"`
	// Emulates is the minor version of --emulated-version, such as "1.36".
	Emulates string `json:"emulates,omitempty"`
	// Without are the group versions, such as "batch/v1", that --runtime-config switches off;
	// sorted.
	Without []string `json:"without,omitempty"`
	// SharesHost is another server with the same host name, and so with the same identity.
	SharesHost string `json:"sharesHost,omitempty"`
}

// Lease is the content of a server's endpoint lease, by which its peers find the server. The run
// read the lease repeatedly between First and Last, and its content was always the same. Other
// Leases describe earlier and later times. Nothing is known about the time between two Leases.
type Lease struct {
	Server      string `json:"server"`
	Incarnation int    `json:"incarnation"` // the incarnation that was ready at this time
	First       Time   `json:"first"`
	Last        Time   `json:"last"`
	// Advertised is the host:port in the lease. It is empty if there was no lease, or an expired
	// one.
	Advertised string `json:"advertised,omitempty"`
}
