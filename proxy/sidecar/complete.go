package sidecar

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/peers"
)

// completed is a set of valid options, with the values that are derived from them.
type completed struct {
	*Options
	upstream    *url.URL
	policy      proxy.Policy
	server      proxy.ServerID
	advertised  string
	public      string // the "host:port" that /api names, "" if it is not known
	minTLS      uint16
	ciphers     []uint16 // nil: Go's
	static      []peers.StaticPeer
	direct      []peers.StaticPeer
	credentials *credentials
	warnings    []string // about options that look wrong but may be intended
}

// Validate returns all errors in the options, joined. It reads the files that the options name. It
// changes nothing and starts nothing.
func (o *Options) Validate() error {
	_, err := o.complete(time.Now())
	return err
}

// problems collects errors.
type problems []error

func (p *problems) add(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

func (p *problems) addf(format string, args ...any) { p.add(fmt.Errorf(format, args...)) }

func (o *Options) complete(now time.Time) (*completed, error) {
	var wrong problems
	c := &completed{Options: o}
	var err error
	if c.policy, err = proxy.PresetNamed(o.Policy); err != nil {
		wrong.addf("--policy: %w", err)
	}
	c.policy = plantedPolicy(c.policy)
	c.completeUpstream(&wrong)
	c.completeServer(&wrong)
	c.completeAddresses(&wrong)
	c.completePeers(&wrong)
	c.completeLimits(&wrong)
	c.completeServing(&wrong)
	c.completeHeaders(&wrong)
	c.completeCredentials(&wrong, now)
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return c, nil
}

func (c *completed) completeUpstream(wrong *problems) {
	u, err := url.Parse(c.Upstream)
	switch {
	case err != nil:
		wrong.addf("--upstream %q: %w", c.Upstream, err)
		return
	case u.Scheme != "https" || u.Hostname() == "":
		wrong.addf("--upstream %q: want https://HOST:PORT: the proxy and the local kube-apiserver authenticate each other by certificates",
			c.Upstream)
		return
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil || u.Fragment != "":
		wrong.addf("--upstream %q: want https://HOST:PORT and nothing more", c.Upstream)
		return
	}
	u.Path = ""
	c.upstream = u
	if c.Listener == nil && portOf(u) == strconv.Itoa(c.SecurePort) && c.listensOn(u.Hostname()) {
		wrong.addf("--upstream %q: this is the address that the proxy itself listens on: let the kube-apiserver listen on another port",
			c.Upstream)
	}
}

func portOf(u *url.URL) string { return cmp.Or(u.Port(), "443") }

// listensOn reports whether the front door listens at this host.
func (c *completed) listensOn(host string) bool {
	ip := net.ParseIP(host)
	if host == "localhost" {
		ip = net.IPv4(127, 0, 0, 1)
	}
	switch {
	case ip == nil:
		return false
	case c.BindAddress == nil || c.BindAddress.IsUnspecified():
		return ip.IsLoopback() || ip.Equal(c.AdvertiseAddress)
	}
	return ip.Equal(c.BindAddress)
}

func (c *completed) completeServer(wrong *problems) {
	id := c.ServerID
	if id == "" {
		name, err := os.Hostname()
		if err != nil {
			wrong.addf("find the host name, from which the kube-apiserver's identity is made: %w; set --server-id", err)
			return
		}
		id = serverID(name)
	}
	if _, err := peers.ParseStaticPeer(id + "=127.0.0.1:1"); err != nil {
		wrong.addf("--server-id %q: not the name of an identity lease", id)
	}
	c.server = proxy.ServerID(id)
}

func (c *completed) completePeers(wrong *problems) {
	var err error
	if c.static, err = peers.ParseStaticPeers(c.Peers); err != nil {
		wrong.addf("--peer: %w", err)
	}
	for _, p := range c.static {
		if p.ID == c.server {
			wrong.addf("--peer %s: this is the identity of the kube-apiserver that this proxy stands in front of", p.ID)
		}
	}
	if c.direct, err = peers.ParseStaticPeers(c.DirectPeers); err != nil {
		wrong.addf("--direct-peer: %w", err)
	}
	if len(c.DirectPeers) > 0 && c.policy.Name != "" && c.policy.Fetching.Direct <= 0 {
		wrong.addf("--direct-peer: with --policy %s no server without a proxy is asked", c.policy.Name)
	}
	if len(c.Peers) > 0 && len(c.DirectPeers) > 0 {
		wrong.addf("--direct-peer: with --peer no leases are read, by which it would be known who has a proxy: give one of the two")
	}
}

func (c *completed) completeAddresses(wrong *problems) {
	good := true
	if c.Listener == nil && (c.SecurePort < 1 || c.SecurePort > 65535) {
		wrong.addf("--secure-port %d: want a port from 1 to 65535", c.SecurePort)
		good = false
	}
	switch {
	case (c.PeerAdvertiseIP == "") != (c.PeerAdvertisePort == ""):
		wrong.addf("--peer-advertise-ip %q and --peer-advertise-port %q: give both or neither", c.PeerAdvertiseIP, c.PeerAdvertisePort)
		good = false
	case c.PeerAdvertiseIP != "":
		if ip, err := netip.ParseAddr(c.PeerAdvertiseIP); err != nil || ip.IsUnspecified() || ip.IsMulticast() || ip.Zone() != "" {
			wrong.addf("--peer-advertise-ip %q: want the IP address of this host as peers see it", c.PeerAdvertiseIP)
			good = false
		}
		if port, err := strconv.ParseUint(c.PeerAdvertisePort, 10, 16); err != nil || port == 0 || c.PeerAdvertisePort[0] == '0' {
			wrong.addf("--peer-advertise-port %q: want a port from 1 to 65535", c.PeerAdvertisePort)
			good = false
		}
	}
	if good {
		advertised, err := c.Options.advertised(utilnet.ResolveBindAddress)
		if err == nil { // peers read it in the lease
			if c.advertised, err = peers.ParseAddress(advertised); err != nil {
				err = fmt.Errorf("peers cannot reach this proxy at the address that it would publish: %w; "+
					"set --peer-advertise-ip and --peer-advertise-port, or --advertise-address", err)
			}
		}
		wrong.add(err)
		// Without a public address, the answer of the local server at /api stays as it is.
		c.public, _ = c.publicAddress(utilnet.ResolveBindAddress)
	}
	c.completeAdmin(wrong)
}

func (c *completed) completeAdmin(wrong *problems) {
	if c.AdminBindAddress == "" || c.AdminListener != nil {
		return
	}
	address, err := netip.ParseAddrPort(c.AdminBindAddress)
	switch {
	case err != nil:
		wrong.addf("--admin-bind-address %q: want IP:PORT, such as 127.0.0.1:6440, or nothing", c.AdminBindAddress)
	case !address.Addr().IsLoopback():
		wrong.addf("--admin-bind-address %q: want a loopback address: it is served without TLS and without authentication", c.AdminBindAddress)
	case c.Listener == nil && int(address.Port()) == c.SecurePort && c.listensOn(address.Addr().String()):
		wrong.addf("--admin-bind-address %q: this is the address of --secure-port: choose another port", c.AdminBindAddress)
	}
}

func (c *completed) completeLimits(wrong *problems) {
	for _, d := range []struct {
		flag     string
		value    time.Duration
		positive bool
	}{
		{"--shutdown-delay-duration", c.ShutdownDelayDuration, false},
		{"--shutdown-timeout", c.ShutdownTimeout, true},
		{"--request-timeout", c.RequestTimeout, true},
		{"--authentication-token-webhook-cache-ttl", c.TokenCacheTTL, false},
		{"--certificate-refresh-time", c.CertificateRefreshTime, true},
	} {
		switch {
		case d.positive && d.value <= 0:
			wrong.addf("%s %s: want a duration above zero", d.flag, d.value)
		case d.value < 0:
			wrong.addf("%s %s: want zero or more", d.flag, d.value)
		}
	}
	if c.TracingRatePerMillion < 0 || c.TracingRatePerMillion > 1e6 {
		wrong.addf("--tracing-sampling-rate-per-million %d: want 0 to 1000000", c.TracingRatePerMillion)
	}
	if c.TracingEndpoint != "" {
		if _, _, err := net.SplitHostPort(c.TracingEndpoint); err != nil {
			wrong.addf("--tracing-endpoint %q: want HOST:PORT", c.TracingEndpoint)
		}
	}
}

func (c *completed) completeHeaders(wrong *problems) {
	for _, list := range []struct {
		flag, standard string
		names          []string
		optional       bool
	}{
		{"--requestheader-username-headers", "X-Remote-User", c.RequestHeaderUsername, false},
		{"--requestheader-uid-headers", "X-Remote-Uid", c.RequestHeaderUID, true},
		{"--requestheader-group-headers", "X-Remote-Group", c.RequestHeaderGroup, false},
		{"--requestheader-extra-headers-prefix", "X-Remote-Extra-", c.RequestHeaderExtraPrefix, false},
	} {
		if len(list.names) == 0 && !list.optional {
			wrong.addf("%s: want at least one, such as %s", list.flag, list.standard)
			continue
		}
		for _, name := range list.names {
			if !httpguts.ValidHeaderFieldName(name) {
				wrong.addf("%s %q: not the name of a header", list.flag, name)
			}
		}
		if len(list.names) > 0 && !slices.ContainsFunc(list.names, func(n string) bool { return strings.EqualFold(n, list.standard) }) {
			// Released kube-apiservers, and so peers, always write the standard names.
			wrong.addf("%s %q: %s is missing, which is what other kube-apiservers write", list.flag, list.names, list.standard)
		}
	}
	for _, name := range c.RequestHeaderNames {
		if strings.TrimSpace(name) == "" {
			wrong.addf("--requestheader-allowed-names: an empty name")
		}
	}
}

// advertised returns the address, as "host:port", at which peers reach this proxy. The rules are
// kube-apiserver's (pkg/controlplane/apiserver, getPeerAddress; k8s.io/apiserver,
// DefaultAdvertiseAddress). If both --peer-advertise-ip and --peer-advertise-port are set, they are
// the address. Otherwise it is --advertise-address with --secure-port. Without --advertise-address,
// the host is what hostAddress returns: --bind-address, or if that is unspecified or loopback, the
// address of the host's default interface, of the same family.
func (o *Options) advertised(hostAddress func(bind net.IP) (net.IP, error)) (string, error) {
	if o.PeerAdvertiseIP != "" && o.PeerAdvertisePort != "" {
		return net.JoinHostPort(o.PeerAdvertiseIP, o.PeerAdvertisePort), nil
	}
	address, err := o.publicAddress(hostAddress)
	if err != nil {
		return "", fmt.Errorf("find an address to advertise to peers: %w; "+
			"set --peer-advertise-ip and --peer-advertise-port, or --advertise-address", err)
	}
	return address, nil
}

// publicAddress returns the address, as "host:port", at which clients reach this proxy. The rules
// are those of kube-apiserver's ExternalAddress without --external-hostname (k8s.io/apiserver,
// pkg/server/config.go): --advertise-address, or else the address that hostAddress returns.
func (o *Options) publicAddress(hostAddress func(bind net.IP) (net.IP, error)) (string, error) {
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
			return "", err
		}
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(port)), nil
}
