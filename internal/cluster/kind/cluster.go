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

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/pki"
)

// Config describes what the cluster starts.
type Config struct {
	Name     string // of the cluster and its network; see [NewName]
	Image    string // of every node; see [FindImage]
	Subject  string
	Servers  []history.Server // names and first versions
	Own      history.OwnFlags // flags of the user's own for every kube-apiserver
	Files    Files
	Recorder lifecycle.Recorder
	Status   func(format string, args ...any) // one line for people; nil is silent
}

// Files are directories of the run. All of them exist.
type Files struct {
	Keys  string // private keys, certificates and a kubeconfig; to be removed after the run
	Nodes string // files for the nodes, and the configuration of the cluster
	Logs  string // output of servers, kubelets, kind and toxiproxy
}

func (f Files) key(name string) string     { return filepath.Join(f.Keys, name) }
func (f Files) log(name string) string     { return filepath.Join(f.Logs, name+".log") }
func (f Files) audit(server string) string { return filepath.Join(f.Logs, server+"-audit.jsonl") }

// Kubeconfig leads to the load balancer's port on this machine.
func (f Files) Kubeconfig() string { return f.key("kubeconfig") }

// Cluster is a running kind cluster. Methods may run concurrently for different servers.
type Cluster struct {
	config Config
	lifecycle.Servers[*process, *server]
	users.Users
	lifecycle lifecycle.Config
	oldest    string     // of the versions in the image
	gateway   netip.Addr // our address on the cluster's network
	fabric    *fabric.Fabric
	linksLog  *os.File
	etcd      struct { // for the harness itself
		sync.Mutex
		client *http.Client // nil until first needed
	}

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	// endRestarts ends all waiting for kubelets. It is called when the run is over.
	endRestarts context.CancelFunc
}

// New prepares a cluster. Nothing exists in the Docker engine yet.
func New(config Config) (*Cluster, error) {
	if config.Status == nil {
		config.Status = func(string, ...any) {}
	}
	c := &Cluster{config: config}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	var err error
	if c.Authority, err = pki.NewAuthority(config.Files.Keys, "ca"); err != nil {
		return nil, err
	}
	if _, err := c.Authority.Issue("admin", users.AdminRequest); err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(c.Admin())
	if err != nil {
		return nil, fmt.Errorf("prepare the readiness probe: %w", err)
	}
	c.lifecycle = lifecycle.Config{
		Recorder: config.Recorder, Status: config.Status, Client: &http.Client{Transport: transport},
		ReadyTimeout: readyTimeout, StopTimeout: stopTimeout + config.Own.Drain(), Context: c.ctx,
	}
	c.lifecycle.Restarts, c.endRestarts = context.WithCancel(c.ctx)
	for i, p := range Places(config.Name, config.Servers) {
		c.Servers = append(c.Servers, c.newServer(p, config.Servers[i].Version))
	}
	if c.linksLog, err = os.OpenFile(config.Files.log("toxiproxy"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("open toxiproxy's log: %w", err)
	}
	return c, nil
}

// Start makes the cluster and returns when every server is ready.
func (c *Cluster) Start(ctx context.Context) error {
	context.AfterFunc(ctx, c.endRestarts) // a step may be waiting for it
	for _, s := range c.Servers {
		s.ApplySetup()
	}
	if err := c.create(ctx); err != nil {
		return err
	}
	for _, s := range c.Servers {
		if err := s.adopt(ctx); err != nil {
			return err
		}
	}
	if err := c.checkInterposed(ctx); err != nil {
		return err
	}
	c.lifecycle.MarkUp()
	return nil
}

// Name returns the name of the kind cluster.
func (c *Cluster) Name() string { return c.config.Name }

// Up reports whether all servers have been ready at once.
func (c *Cluster) Up() bool { return c.lifecycle.Up() }

// Inject puts a fault on one of the cluster's links.
func (c *Cluster) Inject(ctx context.Context, f fault.Fault) (cluster.ActiveFault, error) {
	active, err := c.fabric.Inject(ctx, f)
	if err != nil {
		return nil, err // and no nil *fabric.Active, which would not be nil as an ActiveFault
	}
	return active, nil
}

// RecordPanics records panics that servers survived and logged, as crashes at the end of the run.
// It does not wait until a crashed server is back, because that may take minutes.
func (c *Cluster) RecordPanics() {
	c.endRestarts()
	c.Servers.RecordPanics()
}

// URL returns the URL for clients. It leads to the fault fabric, through the client's link.
func (c *Cluster) URL(name string) (string, error) {
	if _, err := c.Find(name); err != nil {
		return "", err
	}
	return "https://" + c.fabric.Advertised(name).String(), nil
}

// Direct implements [cluster.Reachable].
func (c *Cluster) Direct(name string) (*rest.Config, error) {
	s, err := c.Find(name)
	if err != nil {
		return nil, err
	}
	config := c.Admin()
	config.Host = s.url()
	return config, nil
}

// Close removes the cluster, its network and the links, at any stage. It may be called repeatedly.
func (c *Cluster) Close() error {
	c.cancel()
	err := remove(context.Background(), c.config.Name) // even if other parts failed to end
	c.lifecycle.Wait()
	if c.fabric != nil {
		err = errors.Join(err, c.fabric.Close())
		c.fabric = nil
	}
	_ = c.linksLog.Close()
	return err
}
