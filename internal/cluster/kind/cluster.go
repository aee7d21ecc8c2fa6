package kind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/cluster/life"
	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/pki"
)

// Config says what to bring up.
type Config struct {
	Name     string // of the cluster and its network; see [NewName]
	Image    string // of every node; see [FindImage]
	Subject  string
	Servers  []history.Server // names and first versions
	Proxy    string           // the executable that has the command 'proxy', linked statically; for subject reference only
	Files    Files
	Recorder life.Recorder
	Status   func(format string, args ...any) // one line for people; nil is silent
}

// Files are directories of the run. All of them exist.
type Files struct {
	Keys  string // private keys, certificates and a kubeconfig; to be removed after the run
	Nodes string // what the nodes see as their files, and the configuration of the cluster
	Logs  string // what servers, kubelets, kind and toxiproxy write
}

func (f Files) key(name string) string      { return filepath.Join(f.Keys, name) }
func (f Files) log(name string) string      { return filepath.Join(f.Logs, name+".log") }
func (f Files) audit(server string) string  { return filepath.Join(f.Logs, server+"-audit.jsonl") }
func (f Files) access(server string) string { return filepath.Join(f.Logs, server+"-access.jsonl") }

// Kubeconfig leads to the load balancer's port on this machine.
func (f Files) Kubeconfig() string { return f.key("kubeconfig") }

// Cluster is a running kind cluster. Methods that act on one server may be called concurrently for different servers.
type Cluster struct {
	config    Config
	name      string
	oldest    string // of the versions in the image
	places    []Place
	servers   map[string]*server
	authority *pki.Authority
	gateway   netip.Addr // our address on the cluster's network
	fabric    *fabric.Fabric
	linksLog  *os.File
	probe     *http.Client // admin, straight to the nodes

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	// revival ends when the run does, with what waits for a kubelet that may never start a crashed server again.
	revival    context.Context
	endRevival context.CancelFunc
	up         atomic.Bool // every server has been ready at once
}

// New prepares a cluster. Nothing exists in the Docker engine yet.
func New(config Config) (*Cluster, error) {
	if config.Status == nil {
		config.Status = func(string, ...any) {}
	}
	c := &Cluster{config: config, name: config.Name, places: Places(config.Name, config.Servers), servers: map[string]*server{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.revival, c.endRevival = context.WithCancel(c.ctx)
	for i, p := range c.places {
		c.servers[p.Name] = c.newServer(p, config.Servers[i].Version)
	}
	var err error
	if c.authority, err = pki.NewAuthority(config.Files.Keys, "ca"); err != nil {
		return nil, err
	}
	if _, err := c.authority.Issue("admin", pki.Request{CommonName: "admin", Organization: []string{"system:masters"}, Client: true}); err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(c.Admin())
	if err != nil {
		return nil, fmt.Errorf("prepare the readiness probe: %w", err)
	}
	c.probe = &http.Client{Transport: transport}
	if c.linksLog, err = os.OpenFile(config.Files.log("toxiproxy"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("open toxiproxy's log: %w", err)
	}
	return c, nil
}

// Start makes the cluster and returns when every server is ready.
func (c *Cluster) Start(ctx context.Context) error {
	context.AfterFunc(ctx, c.endRevival) // a step may be waiting for it
	for _, p := range c.places {
		c.servers[p.Name].take()
	}
	if err := c.create(ctx); err != nil {
		return err
	}
	for _, p := range c.places {
		if err := c.servers[p.Name].adopt(ctx); err != nil {
			return err
		}
	}
	if err := c.checkInterposed(ctx); err != nil {
		return err
	}
	c.up.Store(true)
	return nil
}

// Name is that of the kind cluster.
func (c *Cluster) Name() string { return c.name }

// Up reports whether all servers have been ready at once.
func (c *Cluster) Up() bool { return c.up.Load() }

// Inject puts a fault on one of the cluster's links.
func (c *Cluster) Inject(ctx context.Context, f fault.Fault) (cluster.ActiveFault, error) {
	active, err := c.fabric.Inject(ctx, f)
	if err != nil {
		return nil, err // and no nil *fabric.Active, which would not be nil as an ActiveFault
	}
	return active, nil
}

// server returns the server of that name, or an error that lists those there are.
func (c *Cluster) server(name string) (*server, error) {
	if s, ok := c.servers[name]; ok {
		return s, nil
	}
	var names []string
	for _, p := range c.places {
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("no server %q: the run has %v", name, names)
}

// Close removes the cluster with its network, and the links. It may be called at any stage, more than once.
func (c *Cluster) Close() error {
	c.cancel()
	err := remove(context.Background(), c.name) // whatever else has ended
	c.tasks.Wait()
	if c.fabric != nil {
		err = errors.Join(err, c.fabric.Close())
		c.fabric = nil
	}
	_ = c.linksLog.Close()
	return err
}
