// Package local brings up a control plane of real kube-apiserver processes of any mix of versions around a real etcd, every
// server a host of its own inside the run's sandbox. It starts and ends processes and says what they do; what is asked of
// them, and whether they answer well, is for others.
package local

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/skewproof/skewproof/internal/cluster/life"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Addresses come from 198.18.0.0/15, which RFC 2544 sets aside for benchmarks between devices: it is routed nowhere, so even
// a packet that escaped would have nowhere to go.
var (
	hostBlock       = netip.MustParseAddr("198.18.0.0") // a /30 for each server: the cable to its host
	advertisedBlock = netip.MustParseAddr("198.19.0.0") // an address for each server, owned by the switch
	etcdAdvertised  = netip.MustParseAddrPort("198.19.255.1:2379")
	etcdReal        = netip.MustParseAddrPort("127.0.0.1:2379")
)

const (
	securePort = 6443
	// behindPort is where a kube-apiserver listens that has a sidecar in front of it.
	behindPort = 6444
	// MaxServers is what the address plan holds; memory ends earlier (about 350 MiB a server).
	MaxServers = 63
)

// Place is where a server lives.
type Place struct {
	Name string
	// ID is the apiserver identity: the name of its identity lease.
	ID string
	// Cable is the /30 between the run and the server's host.
	Cable netip.Prefix
	// Advertised is what peers and clients dial. It belongs to the switch.
	Advertised netip.AddrPort
	// Real is where the switch leads to: the server's front door, which is the sidecar's where there is one.
	Real netip.AddrPort
	// Own is where the kube-apiserver itself listens: at the front door, or behind the sidecar.
	Own netip.AddrPort
	// Setup is how what runs there is configured other than the subject says; nil: not at all.
	Setup *scenario.Setup
}

// Places returns where each server will live, in order.
func Places(subject string, servers []history.Server) []Place {
	places := make([]Place, len(servers))
	for i, s := range servers {
		places[i] = place(subject, i, s.Name)
	}
	return places
}

// place returns where the i-th server (counted from 0) lives.
func place(subject string, i int, name string) Place {
	cable := netip.PrefixFrom(offset(hostBlock, 4*(i+1)), 30)
	host := cable.Addr().Next().Next()
	p := Place{
		Name:       name,
		ID:         life.Identity(name),
		Cable:      cable,
		Advertised: netip.AddrPortFrom(offset(advertisedBlock, i+1), securePort),
		Real:       netip.AddrPortFrom(host, securePort),
		Own:        netip.AddrPortFrom(host, securePort),
	}
	if subject == scenario.SubjectReference {
		p.Own = netip.AddrPortFrom(host, behindPort)
	}
	return p
}

// offset is the n-th address after one whose last octet is 0. All are in one /24, which has room for [MaxServers]: whoever makes a plan checks for more.
func offset(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	if n > 255 {
		panic(fmt.Sprintf("address plan: %s has no room for %d", a, n))
	}
	b[3] = byte(n)
	return netip.AddrFrom4(b)
}

// Files are the paths that servers' arguments refer to.
type Files struct {
	Keys string // private keys and certificates, in memory
	Data string // etcd's data, in memory
	Logs string // process and audit logs, on disk
}

func (f Files) key(name string) string          { return filepath.Join(f.Keys, name) }
func (f Files) log(name string) string          { return filepath.Join(f.Logs, name+".log") }
func (f Files) audit(server string) string      { return filepath.Join(f.Logs, server+"-audit.jsonl") }
func (f Files) access(server string) string     { return filepath.Join(f.Logs, server+"-access.jsonl") }
func (f Files) auditPolicy() string             { return filepath.Join(f.Keys, "audit-policy.yaml") }
func (f Files) kubeconfig(server string) string { return filepath.Join(f.Keys, "kubeconfig-"+server) }
func (f Files) ownKubeconfig(server string) string {
	return filepath.Join(f.Keys, "own-kubeconfig-"+server)
}
