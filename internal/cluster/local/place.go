// Package local runs a control plane of real kube-apiserver processes around one etcd, with any mix
// of versions. Each server has its own host inside the run's sandbox.
package local

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These addresses are from 198.18.0.0/15, which RFC 2544 reserves for benchmarks between devices.
// No network routes this range, so even a packet that left the sandbox would reach nothing.
var (
	hostBlock       = netip.MustParseAddr("198.18.0.0")   // a /30 for each server: between the run and its host
	advertisedBlock = netip.MustParseAddr("198.19.0.0")   // an address for each server, at which the switch listens
	decoyBlock      = netip.MustParseAddr("198.19.254.0") // an address for each server, at which there is no server; see decoy
	etcdAdvertised  = netip.MustParseAddrPort("198.19.255.1:2379")
	balancerAddress = netip.MustParseAddrPort("198.19.255.2:6443") // of the load balancer over all servers
	steadyAddress   = netip.MustParseAddrPort("198.19.255.3:6443") // of the load balancer too, but here it closes no connection
	// extensionAddress is where the extension apiserver listens: in the run's own namespace, like
	// etcd. Every host reaches it through its gateway.
	extensionAddress = netip.MustParseAddrPort("198.19.255.4:8443")
	etcdReal         = netip.MustParseAddrPort("127.0.0.1:2379")
	loopback         = netip.MustParseAddr("127.0.0.1")
	toxiproxyAPI     = netip.MustParseAddrPort("127.0.0.1:8474") // toxiproxy's own default
)

const (
	securePort = 6443
	// decoyPort is a port on which nothing listens.
	decoyPort = 6440
	// MaxServers is the room in the address plan. Memory runs out earlier (about 350 MiB a server).
	MaxServers = 63
)

// Place says where a server lives.
type Place struct {
	Name string
	// ID is the apiserver identity: the name of its identity lease.
	ID string
	// Subnet is the /30 between the run and the server's host.
	Subnet netip.Prefix
	// Advertised is the address to which peers and clients connect. The switch listens there.
	Advertised netip.AddrPort
	// Real is where the kube-apiserver listens. The switch leads there.
	Real netip.AddrPort
	// Setup is the configuration of the server in addition to the subject's. nil means none.
	Setup *scenario.Setup
	// Flags are flags of the user's own for the kube-apiserver.
	Flags history.OwnFlags
}

// Places returns where each server will live, in order.
func Places(servers []history.Server) []Place {
	places := make([]Place, len(servers))
	for i, s := range servers {
		places[i] = place(i, s.Name)
	}
	return places
}

func place(i int, name string) Place {
	subnet := netip.PrefixFrom(offset(hostBlock, 4*(i+1)), 30)
	host := subnet.Addr().Next().Next()
	return Place{
		Name:       name,
		ID:         lifecycle.Identity(name),
		Subnet:     subnet,
		Advertised: netip.AddrPortFrom(offset(advertisedBlock, i+1), securePort),
		Real:       netip.AddrPortFrom(host, securePort),
	}
}

// offset is the n-th address after one whose last octet is 0. A /24 has room for [MaxServers].
func offset(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	if n > 255 {
		panic(fmt.Sprintf("address plan: %s has no room for %d", a, n))
	}
	b[3] = byte(n)
	return netip.AddrFrom4(b)
}

// decoy is an address of the run's own network at which there is never a server.
func (p Place) decoy() netip.AddrPort {
	octets := p.Advertised.Addr().As4()
	return netip.AddrPortFrom(offset(decoyBlock, int(octets[3])), securePort)
}

// setup is the setup of the place. It is never nil.
func (p Place) setup() scenario.Setup {
	if p.Setup == nil {
		return scenario.Setup{}
	}
	return *p.Setup
}

// featureVersion is the version that decides a kube-apiserver's flags: the emulated one, if there
// is one.
func (p Place) featureVersion(version string) string {
	if emulated := cmp.Or(p.Setup.Like(), p.Flags.Emulates()); emulated != "" {
		return "v" + emulated
	}
	return version
}

func (p Place) hostname() string {
	if of := p.setup().HostnameOf; of != "" {
		return of
	}
	return p.Name
}

// Files are the paths that servers' arguments refer to.
type Files struct {
	Keys string // private keys and certificates, in memory
	Data string // etcd's data, in memory
	Logs string // process and audit logs, on disk
}

func (f Files) key(name string) string     { return filepath.Join(f.Keys, name) }
func (f Files) log(name string) string     { return filepath.Join(f.Logs, name+".log") }
func (f Files) audit(server string) string { return filepath.Join(f.Logs, server+"-audit.jsonl") }
func (f Files) metrics(controllers string, start int) string {
	return filepath.Join(f.Logs, fmt.Sprintf("%s-%d.metrics", controllers, start))
}
func (f Files) auditPolicy() string { return filepath.Join(f.Keys, "audit-policy.yaml") }

// Kubeconfig has a context for each path to a server, for the administrator. NAME is the path of
// clients, through the client's link. NAME-direct is the path around the links.
func (f Files) Kubeconfig() string { return filepath.Join(f.Keys, "kubeconfig") }
