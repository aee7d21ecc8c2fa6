package kind

import (
	"context"
	"net"
	"net/netip"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/scenario"
)

// URL is what clients dial to reach a server: the fault fabric, which leads through the client's link.
func (c *Cluster) URL(name string) (string, error) {
	if _, err := c.server(name); err != nil {
		return "", err
	}
	return "https://" + c.fabric.Advertised(name).String(), nil
}

// Direct is the administrator's way to one kube-apiserver itself, around links, faults and its sidecar: for ground truth, never for
// traffic.
func (c *Cluster) Direct(name string) (*rest.Config, error) {
	return c.around(name, (*server).own)
}

// FrontDoor is the administrator's way to what clients meet at a server, around links and faults: the sidecar if there is one, otherwise
// the kube-apiserver itself.
func (c *Cluster) FrontDoor(name string) (*rest.Config, error) {
	return c.around(name, (*server).door)
}

func (c *Cluster) around(name string, way func(*server) netip.AddrPort) (*rest.Config, error) {
	s, err := c.server(name)
	if err != nil {
		return nil, err
	}
	config := c.Admin()
	config.Host = "https://" + s.door().String()
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) { // where it is may change with its setup
		return new(net.Dialer).DialContext(ctx, network, way(s).String())
	}
	return config, nil
}

// own is where the kube-apiserver itself listens: at the front door, or behind the sidecar.
func (s *server) own() netip.AddrPort {
	if s.subject() == scenario.SubjectReference {
		return netip.AddrPortFrom(s.address, behindPort)
	}
	return s.door()
}

func (s *server) door() netip.AddrPort { return netip.AddrPortFrom(s.address, securePort) }

// Admin is the administrator's identity, without a host.
func (c *Cluster) Admin() *rest.Config {
	f := c.config.Files
	return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: f.key("ca.crt"), CertFile: f.key("admin.crt"), KeyFile: f.key("admin.key")}}
}

// User is the identity of a user with a client certificate, without a host. What the user may do is for others to grant.
func (c *Cluster) User(name string) (*rest.Config, error) {
	pair, err := c.authority.Issue("user-"+name, pki.Request{CommonName: name, Client: true})
	if err != nil {
		return nil, err
	}
	config := c.Admin()
	config.CertFile, config.KeyFile = pair.Cert, pair.Key
	return config, nil
}

// Anonymous trusts the cluster and has no identity of its own: for bearer tokens.
func (c *Cluster) Anonymous() *rest.Config {
	return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: c.config.Files.key("ca.crt")}}
}
