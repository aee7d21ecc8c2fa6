package local

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/cluster/life"
	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/pki"
	"github.com/skewproof/skewproof/internal/sandbox"
)

// Config says what to bring up.
type Config struct {
	Subject string
	Servers []history.Server // names and first versions
	// APIServers maps versions to kube-apiserver binaries; Etcd is the etcd binary. Nothing is fetched from here: the
	// sandbox has no way out.
	APIServers map[string]string
	Etcd       string
	Proxy      string // the executable that has the command 'proxy': this one; for subject reference only
	Files      Files
	Recorder   life.Recorder
	Status     func(format string, args ...any) // one line for people; nil is silent
	// Lost is told, from a goroutine of its own, that a program which servers need and that is none of them has ended by itself: [fault.Etcd], or
	// [ProgramExtension]. Nil: nobody is told.
	Lost func(part string, err error)
}

// Cluster is a running control plane. Methods that act on one server may be called concurrently for different servers.
type Cluster struct {
	config  Config
	places  []Place
	servers map[string]*server
	etcd    *unit
	release func() // etcd may end; nil before it runs
	fabric  *fabric.Fabric
	log     io.Closer // of the fabric
	ways    *ways
	probe   *http.Client // by the ways

	authorities *authorities
	up          atomic.Bool // every server has been ready at once
	interposers interposers
	extension   extensionServer
}

// New creates the hosts, keys and links of a cluster; no server runs yet. It must be called inside a sandbox.
func New(config Config) (*Cluster, error) {
	if config.Status == nil {
		config.Status = func(string, ...any) {}
	}
	if config.Lost == nil {
		config.Lost = func(string, error) {}
	}
	c := &Cluster{config: config, places: Places(config.Subject, config.Servers), servers: map[string]*server{}}
	if err := c.build(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) build() error {
	for _, dir := range []string{c.config.Files.Keys, c.config.Files.Data, c.config.Files.Logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the run's directories: %w", err)
		}
	}
	var err error
	if c.authorities, err = credentials(c.places, c.config.Files); err != nil {
		return err
	}
	if c.ways, err = newWays(c.config.Files.key("admin.crt"), c.config.Files.key("admin.key"), c.present); err != nil {
		return err
	}
	for _, p := range c.places {
		if err := c.ways.accept(c.config.Files.key(p.serving() + ".crt")); err != nil {
			return err
		}
	}
	c.probe = &http.Client{Transport: c.ways}
	if err := sandbox.Own(etcdAdvertised.Addr()); err != nil {
		return err
	}
	links := fabric.Config{
		API:          toxiproxyAPI,
		Now:          c.config.Recorder.Now,
		Destinations: []fabric.Destination{{Name: fault.Etcd, Advertised: etcdAdvertised, Real: etcdReal}},
	}
	for i, p := range c.places {
		host, err := sandbox.NewHost(p.Name, p.Cable)
		if err != nil {
			return err
		}
		c.servers[p.Name] = c.newServer(p, c.config.Servers[i].Version, host)
		if err := sandbox.Own(p.Advertised.Addr()); err != nil {
			return err
		}
		links.Sources = append(links.Sources, fabric.Source{Name: p.Name, Addr: host.Address})
		links.Destinations = append(links.Destinations, fabric.Destination{Name: p.Name, Advertised: p.Advertised, Real: p.Real})
	}
	log, err := os.OpenFile(c.config.Files.log("toxiproxy"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open toxiproxy's log: %w", err)
	}
	links.Log, c.log = log, log
	c.fabric, err = fabric.New(links)
	return err
}

// Inject puts a fault on one of the cluster's links.
func (c *Cluster) Inject(ctx context.Context, f fault.Fault) (cluster.ActiveFault, error) {
	active, err := c.fabric.Inject(ctx, f)
	if err != nil {
		return nil, err // and no nil *fabric.Active, which would not be nil as an ActiveFault
	}
	return active, nil
}

// Start starts etcd and every server, and waits until all are ready.
func (c *Cluster) Start(ctx context.Context) error {
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range c.places {
		s := c.servers[p.Name]
		group.Go(func() error { return s.start(ctx, s.Version) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.up.Store(true)
	return nil
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	etcd, err := startProcess("etcd", c.config.Etcd, EtcdArguments(c.config.Files), c.config.Files.log("etcd"), (*exec.Cmd).Start)
	if err != nil {
		return err
	}
	c.etcd = life.NewUnit[*process]()
	c.etcd.Add(etcd)
	client, err := c.etcdClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	err = c.etcd.Await(ctx, etcd, readyTimeout, func(ctx context.Context) error {
		return life.Get(ctx, client, "https://"+etcdReal.String()+"/readyz", io.Discard)
	})
	if err != nil {
		return err
	}
	c.release = c.need(fault.Etcd, c.etcd)
	return nil
}

func (c *Cluster) etcdClient() (*http.Client, error) {
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: c.config.Files.key("etcd-ca.crt"), CertFile: c.config.Files.key("etcd-client.crt"), KeyFile: c.config.Files.key("etcd-client.key"),
	}})
	if err != nil {
		return nil, fmt.Errorf("prepare etcd's readiness probe: %w", err)
	}
	return &http.Client{Transport: transport}, nil
}

// server returns the server of that name, or an error that lists those there are.
func (c *Cluster) server(name string) (*server, error) {
	if s, ok := c.servers[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("no server %q: the run has %v", name, c.names())
}

func (c *Cluster) names() []string {
	names := make([]string, len(c.places))
	for i, p := range c.places {
		names[i] = p.Name
	}
	return names
}

// Close ends every process at once and frees the links and hosts. It may be called at any stage, more than once.
func (c *Cluster) Close() {
	var all sync.WaitGroup
	for _, s := range c.servers {
		all.Go(s.close)
	}
	all.Wait()
	c.extension.close()
	if c.etcd != nil {
		if c.release != nil {
			c.release()
		}
		_ = kill(c.etcd)
	}
	c.interposers.close()
	if c.fabric != nil {
		_ = c.fabric.Close()
		c.fabric = nil
	}
	if c.log != nil { // which the fabric writes to until it is closed
		_ = c.log.Close()
	}
}

// direct is the administrator's configuration for dialling real addresses, around the links.
func (c *Cluster) direct() *rest.Config {
	return &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: c.config.Files.key("ca.crt"), CertFile: c.config.Files.key("admin.crt"), KeyFile: c.config.Files.key("admin.key"),
	}}
}

// Direct is the administrator's way to one kube-apiserver itself, around links, faults and its sidecar: for ground truth, never for
// traffic.
func (c *Cluster) Direct(name string) (*rest.Config, error) {
	return c.around(name, func(p Place) netip.AddrPort { return p.Own })
}

// FrontDoor is the administrator's way to what clients meet at a server, around links and faults: the sidecar if there is one, otherwise
// the kube-apiserver itself.
func (c *Cluster) FrontDoor(name string) (*rest.Config, error) {
	return c.around(name, func(p Place) netip.AddrPort { return p.Real })
}

func (c *Cluster) around(name string, door func(Place) netip.AddrPort) (*rest.Config, error) {
	s, err := c.server(name)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: "https://" + door(s.place).String(), Transport: c.ways}, nil
}

// present is where what is to be found at an address is at present: a server whose proxy is switched off is one program at the front door.
func (c *Cluster) present(at netip.AddrPort) netip.AddrPort {
	for _, s := range c.servers {
		if s.place.Own == at {
			return s.present().Own
		}
	}
	return at
}

// URL is what clients dial to reach a server: its advertised address, which leads through the client's link.
func (c *Cluster) URL(name string) (string, error) {
	s, err := c.server(name)
	if err != nil {
		return "", err
	}
	return "https://" + s.place.Advertised.String(), nil
}

// Admin is the administrator's identity, without a host.
func (c *Cluster) Admin() *rest.Config { return c.direct() }

// User is the identity of a user with a client certificate, without a host. What the user may do is for others to grant.
func (c *Cluster) User(name string) (*rest.Config, error) {
	pair, err := c.authorities.servers.Issue("user-"+name, pki.Request{CommonName: name, Client: true})
	if err != nil {
		return nil, err
	}
	config := c.direct()
	config.CertFile, config.KeyFile = pair.Cert, pair.Key
	return config, nil
}

// Anonymous trusts the cluster and has no identity of its own: for bearer tokens.
func (c *Cluster) Anonymous() *rest.Config {
	return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: c.config.Files.key("ca.crt")}}
}
