package sim

import (
	"cmp"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/internal/scenario"
)

// This file has the flags of a simulated process and the behaviour of the process. The behaviour is
// that of the flags, unless a defect is planted or upstream ignores a flag.

// securePort is the port on which every simulated server listens. No server listens on decoyPort.
const (
	securePort = "6443"
	decoyPort  = "6440"
)

// decoy and own return hosts that a server may advertise and that no peer reaches. At the decoy
// there is no server; own is the server's host name in its own network.
func decoy(name string) string { return "nowhere-" + name }
func own(name string) string   { return "host-of-" + name }

// configure reads the flags of a starting process, records them, and makes the process obey them.
func (srv *server) configure() {
	told := srv.flags()
	srv.s.history.Configurations = append(srv.s.history.Configurations, told)
	srv.does = told
	if obeys := srv.s.setup.Defects.Obeys; obeys != nil {
		srv.does = obeys(srv.id, told)
	}
	srv.on = srv.on && srv.does.Proxy != history.ProxyOff
}

// flags returns the flags that a local run would give the server.
func (srv *server) flags() history.Configuration {
	setup := scenario.Setup{}
	if srv.setup != nil {
		setup = *srv.setup
	}
	r, _ := release.Parse(srv.release) // no error: the release was parsed before to find what the server serves
	c := history.Configuration{
		Server: srv.name, Incarnation: srv.incarnation, At: srv.s.loop.Now(), Setup: srv.setup.String(), Proxy: history.ProxyOff,
		AdvertiseIP: srv.name, Port: securePort, Emulates: srv.setup.Like(), Without: r.Without,
	}
	kubeadm := setup.Flags == scenario.FlagsKubeadm && !srv.reference()
	switch {
	case !srv.on || setup.Proxy == scenario.Off:
	case !kubeadm || minorOf(cmp.Or(prefixed(c.Emulates), srv.release)) >= 36: // on by default
		c.Proxy = history.ProxyOwn
	}
	if setup.Advertise == scenario.AdvertiseHost {
		c.AdvertiseIP = ""
	}
	if c.Proxy == history.ProxyOff || kubeadm {
		return c
	}
	switch setup.PeerCA {
	case scenario.TrustStranger:
		c.PeerCA = "stranger.crt"
	case "":
		c.PeerCA = "ca.crt"
	}
	switch setup.Advertise {
	case "":
		c.PeerIP, c.PeerPort = srv.name, securePort
	case scenario.AdvertiseWrong:
		c.PeerIP, c.PeerPort = decoy(srv.name), securePort
	case scenario.AdvertiseIP:
		c.PeerIP = decoy(srv.name)
	case scenario.AdvertisePort:
		c.PeerPort = decoyPort
	}
	return c
}

// advertises returns the host:port that the process tells its peers. It uses both flags if both are
// set, and otherwise neither of them (getPeerAddress in k8s.io/kubernetes,
// pkg/controlplane/apiserver).
func (srv *server) advertises() string {
	if c := srv.does; c.PeerIP != "" && c.PeerPort != "" {
		return c.PeerIP + ":" + c.PeerPort
	}
	return cmp.Or(srv.does.AdvertiseIP, own(srv.name)) + ":" + srv.does.Port
}

// reports returns the emulated minor version that the process reports at /version.
func (srv *server) reports() string {
	if minorOf(srv.release) < 34 {
		return "" // older versions report none
	}
	return cmp.Or(srv.does.Emulates, scenario.MinorVersion(srv.release))
}

func prefixed(minor string) string {
	if minor == "" {
		return ""
	}
	return "v" + minor
}

// sight records the content of the endpoint lease of a ready server, from now on.
func (srv *server) sight() {
	s := srv.s
	now := history.Lease{Server: srv.name, Incarnation: srv.incarnation, First: s.loop.Now(), Last: s.loop.Now()}
	if srv.lease.endpoint {
		now.Advertised = srv.lease.address
	}
	if was := srv.sighted(); was != nil {
		if was.Advertised == now.Advertised {
			return
		}
		was.Last = now.First
	}
	s.history.Leases = append(s.history.Leases, now)
	srv.sighting = len(s.history.Leases)
}

// unsight ends the current record of the lease: the process is no longer ready, or the run is over.
func (srv *server) unsight() {
	if was := srv.sighted(); was != nil {
		was.Last = srv.s.loop.Now()
	}
	srv.sighting = 0
}

// sighted returns the current record of the lease; nil if the process is not ready.
func (srv *server) sighted() *history.Lease {
	if srv.sighting == 0 {
		return nil
	}
	return &srv.s.history.Leases[srv.sighting-1]
}
