package kind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/skewproof/skewproof/internal/cluster/lease"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// CheckPlan refuses plans that a kind cluster cannot carry out in full. The limits of the
// catalogue's scenarios follow from it.
func CheckPlan(plan scenario.Plan) error {
	refuse := func(what string) error {
		return fmt.Errorf("--backend %s cannot carry this scenario out: it %s; use --backend %s", scenario.BackendKind, what,
			scenario.BackendLocal)
	}
	setUp := func(server string, setup *scenario.Setup) error {
		if err := CheckSetup(setup); err != nil {
			return refuse("sets server " + server + " up in a way of its own (" + err.Error() + ")")
		}
		return nil
	}
	for _, s := range plan.Servers {
		if err := setUp(s.Name, s.Setup); err != nil {
			return err
		}
	}
	for _, s := range plan.Steps {
		if err := setUp(s.Server, s.Setup); err != nil {
			return err
		}
		switch {
		case s.Action == scenario.BreakDiscovery:
			return refuse("lets a discovery document fail")
		case s.Definition != nil && s.Definition.Aggregated:
			return refuse("has an aggregated API, behind which no program of ours runs there")
		case s.Action.Administers():
			return refuse("acts as an administrator of etcd, leases or rights, on whom other programs of the cluster depend")
		case s.AboutControllers():
			return refuse("starts controllers, and a kind cluster has its own")
		case s.AboutTests():
			return refuse("starts Kubernetes' own tests, which run in the sandbox of the backend local")
		}
	}
	return nil
}

// CheckSetup refuses setups that a node cannot have. The kubelet, the etcd member and the load
// balancer of a node use its certificates, address and name too, and would break with wrong ones.
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

// Configure gives the next incarnation of a server a setup; nil: none. The server must not be
// running. Before [Cluster.Start] it is the setup with which kubeadm makes the server.
func (c *Cluster) Configure(name string, setup *scenario.Setup) error {
	s, err := c.Find(name)
	if err != nil {
		return err
	}
	if err := CheckSetup(setup); err != nil {
		return fmt.Errorf("configure server %q: %w", name, err)
	}
	s.Lock()
	defer s.Unlock()
	s.Server.Configure(setup)
	return nil
}

// Dialled is how many connections a server or [fault.Client] has made so far to a server.
func (c *Cluster) Dialled(from, to string) int {
	for _, d := range c.dials(to) {
		if d.From == from {
			return d.Connections
		}
	}
	return 0
}

func (c *Cluster) dials(to string) []history.Dial {
	s, err := c.Find(to)
	if err != nil || c.fabric == nil { // nothing exists yet
		return nil
	}
	return c.fabric.Dials(to, s.real().String())
}

// Effect is the visible effect of the configuration of a server's present incarnation. Dials are
// all so far, including those of earlier incarnations. No setup changes certificates here.
func (c *Cluster) Effect(ctx context.Context, name string) (history.Effect, error) {
	s, err := c.Find(name)
	if err != nil {
		return history.Effect{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	seen := history.Effect{
		Server: name, Incarnation: c.Serving(name), At: c.config.Recorder.Now(), Setup: s.Setup().String(), Dials: c.dials(name),
	}
	seen.Advertised, err = c.Advertised(ctx, name)
	return seen, err
}

// Advertised implements [cluster.Advertiser].
func (c *Cluster) Advertised(ctx context.Context, name string) (string, error) {
	s, err := c.Find(name)
	if err != nil {
		return "", err
	}
	client, err := c.etcdClient(ctx)
	if err != nil {
		return "", err
	}
	return lease.Advertised(ctx, s.member(client), s.place.ID)
}

// etcdClient asks the nodes' etcd members, around the links, with kubeadm's keys. It is made once.
func (c *Cluster) etcdClient(ctx context.Context) (*http.Client, error) {
	c.etcd.Lock()
	defer c.etcd.Unlock()
	if c.etcd.client != nil {
		return c.etcd.client, nil
	}
	files := map[string]string{"etcd-ca.crt": "etcd/ca.crt", "etcd-client.crt": "apiserver-etcd-client.crt",
		"etcd-client.key": "apiserver-etcd-client.key"}
	for ours, theirs := range files {
		if _, err := os.Stat(c.config.Files.key(ours)); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err := fetch(ctx, c.Servers[0].place.Node, pkiDir+"/"+theirs, c.config.Files.key(ours)); err != nil {
			return nil, err
		}
	}
	client, err := users.EtcdClient(c.config.Files.Keys)
	c.etcd.client = client
	return client, err
}
