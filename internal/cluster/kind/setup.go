package kind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster/lease"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// configured is the subject of what really runs where a server is set up in a way of its own. With its proxy switched off it is a kube-apiserver alone,
// at its front door, whatever the subject of the run.
func configured(subject string, setup *scenario.Setup) string {
	switch {
	case setup == nil:
		return subject
	case setup.Proxy == scenario.Off:
		return scenario.SubjectNone
	case setup.Proxy == scenario.On && subject == scenario.SubjectNone:
		return scenario.SubjectBuiltin
	default:
		return subject
	}
}

// CheckSetup refuses setups that a node cannot have. On the certificates, the address and the name of a node depends more than its peers: its kubelet, its etcd
// member and the load balancer would be wrong with them.
func CheckSetup(setup *scenario.Setup) error {
	if setup == nil {
		return nil
	}
	rest := *setup
	rest.Proxy, rest.Flags, rest.EmulatedVersion = "", "", ""
	if rest == (scenario.Setup{}) {
		return nil
	}
	return fmt.Errorf("a node cannot be set up so: %s", rest.String())
}

// Configure says how the next process of a server, which must not be running, is set up; nil: as the subject says. Before [Cluster.Start] that is how
// kubeadm makes it.
func (c *Cluster) Configure(name string, setup *scenario.Setup) error {
	s, err := c.server(name)
	if err != nil {
		return err
	}
	if err := CheckSetup(setup); err != nil {
		return fmt.Errorf("configure server %q: %w", name, err)
	}
	s.Lock()
	defer s.Unlock()
	s.next = setup
	return nil
}

// take makes the setup of the next process that of the present one.
func (s *server) take() {
	s.setup.Store(s.next)
	s.next = nil
}

// subject is that of what runs at present.
func (s *server) subject() string { return configured(s.cluster.config.Subject, s.setup.Load()) }

// Dialled is how many connections somebody (a server, or [fault.Client]) has made so far to where a server is.
func (c *Cluster) Dialled(from, to string) int {
	return c.dials(to)[from].Connections
}

// dials are all connections made so far to a server, by who made them.
func (c *Cluster) dials(to string) map[string]history.Dial {
	all := map[string]history.Dial{}
	s, err := c.server(to)
	if err != nil || c.fabric == nil { // nothing is there yet
		return all
	}
	for _, l := range c.fabric.Links() {
		if n := l.Accepted + l.Refused; l.To == to && n > 0 {
			all[l.From] = history.Dial{From: l.From, Address: s.door().String(), Connections: n}
		}
	}
	return all
}

// Effect is what the configuration of a server's present process is seen to do. Dials are all so far, also those of processes before. Certificates are not
// looked at: no setup here changes them.
func (c *Cluster) Effect(ctx context.Context, name string) (history.Effect, error) {
	s, err := c.server(name)
	if err != nil {
		return history.Effect{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, seeing)
	defer cancel()
	seen := history.Effect{Server: name, Incarnation: c.Serving(name), At: c.config.Recorder.Now(), Setup: s.setup.Load().String()}
	dials := c.dials(name)
	for _, from := range slices.Sorted(maps.Keys(dials)) {
		seen.Dials = append(seen.Dials, dials[from])
	}
	client, err := c.etcdClient(ctx)
	if err != nil {
		return seen, err
	}
	defer client.CloseIdleConnections()
	seen.Advertised, err = lease.Advertised(ctx, client, netip.AddrPortFrom(s.address, etcdPort).String(), s.place.ID)
	return seen, err
}

// etcdClient asks the nodes' etcd members, around the links, as their kube-apiservers do. Keys of etcd are kubeadm's, which all nodes have.
func (c *Cluster) etcdClient(ctx context.Context) (*http.Client, error) {
	files := map[string]string{"etcd-ca.crt": "etcd/ca.crt", "etcd-client.crt": "apiserver-etcd-client.crt", "etcd-client.key": "apiserver-etcd-client.key"}
	for ours, theirs := range files {
		if _, err := os.Stat(c.config.Files.key(ours)); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err := fetch(ctx, c.places[0].Node, pkiDir+"/"+theirs, c.config.Files.key(ours)); err != nil {
			return nil, err
		}
	}
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: c.config.Files.key("etcd-ca.crt"), CertFile: c.config.Files.key("etcd-client.crt"), KeyFile: c.config.Files.key("etcd-client.key"),
	}})
	if err != nil {
		return nil, fmt.Errorf("prepare to ask etcd: %w", err)
	}
	return &http.Client{Transport: transport}, nil
}
