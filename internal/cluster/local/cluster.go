package local

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/cluster/users"
	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/sandbox"
)

const (
	// readyTimeout is generous: a loaded two-core machine needs a tenth of it.
	readyTimeout = 2 * time.Minute
	// stopTimeout exceeds kube-apiserver's limit for requests in flight (--request-timeout, 60 s).
	stopTimeout = 75 * time.Second
)

// Config describes what the cluster starts.
type Config struct {
	Subject string
	Servers []history.Server // names and first versions
	Own     history.OwnFlags // flags of the user's own for every kube-apiserver
	Programs
	Self  string // the executable with the command 'extension': this program
	Files Files
	// AsKubeadm starts kube-controller-manager without the feature gates of runs, and with the keys
	// of the authority, so that it signs certificates as with kubeadm.
	AsKubeadm bool
	Recorder  lifecycle.Recorder
	Status    func(format string, args ...any) // one line for people
	// Failed is called from its own goroutine when a program that servers need ends by itself:
	// [fault.Etcd], [ProgramExtension] or [ProgramControllers], but not a server.
	Failed func(part string, err error)
}

// Programs are the paths of the binaries that the cluster starts, by version. Nothing can be
// fetched from a cluster, because the sandbox has no network access.
type Programs struct {
	APIServers map[string]string `json:"apiservers"` // those of the subject
	// Plain are unchanged kube-apiservers, for servers whose setup is plain.
	Plain       map[string]string `json:"plain,omitempty"`
	Controllers map[string]string `json:"controllers,omitempty"` // kube-controller-manager
	Tests       map[string]string `json:"tests,omitempty"`       // e2e.test
	Etcd        string            `json:"etcd"`                  // of one version
}

// Cluster is a running control plane. Methods may run concurrently for different servers.
type Cluster struct {
	config Config
	lifecycle.Servers[*process, *server]
	users.Users
	lifecycle lifecycle.Config
	etcd      *dependency
	fabric    *fabric.Fabric
	log       io.Closer // of the fabric
	admin     *adminTransport
	askEtcd   func() (*http.Client, error) // a client for the harness itself; made once

	authorities *authorities
	interposers interposers
	extension   extensionServer
	controllers controllers // without leader election
	candidates  candidates
	tests       tests
	unbalance   func() // ends the load balancer; nil before it was started
}

// New creates the hosts, keys and links of a cluster. No server runs yet. Call it in a sandbox.
func New(config Config) (*Cluster, error) {
	c := &Cluster{config: config, controllers: controllers{name: controllersName, subnet: controllersHost, pause: restartDelay}}
	if err := c.build(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) build() error {
	files := c.config.Files
	for _, dir := range []string{files.Keys, files.Data, files.Logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the run's directories: %w", err)
		}
	}
	places := Places(c.config.Servers)
	if err := c.makeCredentials(places); err != nil {
		return err
	}
	c.lifecycle = lifecycle.Config{
		Recorder: c.config.Recorder, Status: c.config.Status, Client: &http.Client{Transport: c.admin},
		ReadyTimeout: readyTimeout, StopTimeout: stopTimeout + c.config.Own.Drain(), Context: context.Background(),
	}
	c.askEtcd = sync.OnceValues(func() (*http.Client, error) { return users.EtcdClient(files.Keys) })
	if err := sandbox.Own(etcdAdvertised.Addr()); err != nil {
		return err
	}
	links := fabric.Config{
		API:          toxiproxyAPI,
		Now:          c.config.Recorder.Now,
		Destinations: []fabric.Destination{{Name: fault.Etcd, Advertised: etcdAdvertised, Real: etcdReal}},
	}
	for i, p := range places {
		p.Flags = c.config.Own
		host, err := sandbox.NewHost(p.Name, p.Subnet)
		if err != nil {
			return err
		}
		c.Servers = append(c.Servers, c.newServer(p, c.config.Servers[i].Version, host))
		if err := sandbox.Own(p.Advertised.Addr()); err != nil {
			return err
		}
		links.Sources = append(links.Sources, fabric.Source{Name: p.Name, Addr: host.Address})
		links.Destinations = append(links.Destinations, fabric.Destination{Name: p.Name, Advertised: p.Advertised, Real: p.Real})
	}
	log, err := os.OpenFile(files.log("toxiproxy"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open toxiproxy's log: %w", err)
	}
	links.Log, c.log = log, log
	c.fabric, err = fabric.New(links)
	return err
}

func (c *Cluster) makeCredentials(places []Place) (err error) {
	files := c.config.Files
	if c.authorities, err = credentials(places, files); err != nil {
		return err
	}
	c.Users = users.Users{Authority: c.authorities.servers}
	if c.admin, err = newAdminTransport(files.key("admin.crt"), files.key("admin.key")); err != nil {
		return err
	}
	for _, p := range places {
		if err := c.admin.accept(files.key(p.serving() + ".crt")); err != nil {
			return err
		}
	}
	return nil
}

// Inject puts a fault on one of the cluster's links.
func (c *Cluster) Inject(ctx context.Context, f fault.Fault) (cluster.ActiveFault, error) {
	active, err := c.fabric.Inject(ctx, f)
	if err != nil {
		return nil, err // not a nil *fabric.Active, which would not equal nil as an ActiveFault
	}
	return active, nil
}

// Start starts etcd and every server, and waits until all are ready.
func (c *Cluster) Start(ctx context.Context) error {
	client, err := c.askEtcd()
	if err != nil {
		return err
	}
	c.etcd, err = c.startDependency(ctx, start{
		name: fault.Etcd, binary: c.config.Etcd, args: EtcdArguments(c.config.Files), log: "etcd", on: (*exec.Cmd).Start,
		ready: "https://" + etcdReal.String() + "/readyz", client: client, limit: readyTimeout,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range c.Servers {
		group.Go(func() error { return s.Start(ctx, "") })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.lifecycle.MarkUp()
	c.unbalance, err = c.balance()
	return err
}

// Close ends all processes, links and hosts. It may be called at any time, and more than once.
func (c *Cluster) Close() {
	for _, r := range append(c.candidates.list(), &c.controllers) {
		r.close() // before the servers end, because it then writes what it measured
	}
	var all sync.WaitGroup
	for _, s := range c.Servers {
		all.Go(s.close)
	}
	all.Wait()
	c.tests.close()
	if c.unbalance != nil {
		c.unbalance()
		c.unbalance = nil
	}
	c.extension.close()
	if c.etcd != nil {
		c.etcd.kill()
	}
	c.interposers.close()
	if c.fabric != nil {
		_ = c.fabric.Close()
		c.fabric = nil
	}
	if c.log != nil { // the fabric writes to it until the fabric is closed
		_ = c.log.Close()
	}
}

// Direct implements [cluster.Reachable].
func (c *Cluster) Direct(name string) (*rest.Config, error) {
	s, err := c.Find(name)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: "https://" + s.place.Real.String(), Transport: c.admin}, nil
}

// URL is the URL for clients: the advertised address of a server, through the client's link.
func (c *Cluster) URL(name string) (string, error) {
	s, err := c.Find(name)
	if err != nil {
		return "", err
	}
	return "https://" + s.place.Advertised.String(), nil
}
