package sidecar

import (
	"fmt"
	"net"
	"strconv"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// advertised returns the address, as "host:port", by which peers reach this proxy. The chain is kube-apiserver's
// (pkg/controlplane/apiserver, getPeerAddress; k8s.io/apiserver, DefaultAdvertiseAddress): --peer-advertise-ip with
// --peer-advertise-port; else --advertise-address; else --bind-address unless that is unspecified or loopback; else the address of the
// host's default interface, of the family of --bind-address; the latter three with --secure-port. hostAddress finds that last address.
func (o *Options) advertised(hostAddress func(bind net.IP) (net.IP, error)) (string, error) {
	if o.PeerAdvertiseIP != "" && o.PeerAdvertisePort != "" {
		return net.JoinHostPort(o.PeerAdvertiseIP, o.PeerAdvertisePort), nil
	}
	port := o.SecurePort
	if o.Listener != nil {
		if a, ok := o.Listener.Addr().(*net.TCPAddr); ok {
			port = a.Port
		}
	}
	ip := o.AdvertiseAddress
	if ip == nil || ip.IsUnspecified() {
		var err error
		if ip, err = hostAddress(o.BindAddress); err != nil {
			return "", fmt.Errorf("find an address to advertise to peers: %w; set --peer-advertise-ip and --peer-advertise-port, or --advertise-address", err)
		}
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(port)), nil
}

// resolveBindAddress is the end of the chain: the bind address, or the host's own where that is unspecified or loopback.
func resolveBindAddress(bind net.IP) (net.IP, error) { return utilnet.ResolveBindAddress(bind) }
