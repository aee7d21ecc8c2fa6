package existing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/cluster/lifecycle"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

const requestTimeout = 10 * time.Second

// Cluster is a control plane that skewproof did not start. It refuses all methods that would change
// it.
type Cluster struct {
	endpoints []Endpoint
	servers   map[string]*server
	proxyless []string // see New
	recorder  Recorder
	status    func(string, ...any)

	stop     context.CancelFunc
	watching sync.WaitGroup
}

// Recorder records the run.
type Recorder interface {
	lifecycle.Recorder
	Fault(history.Fault)
}

type server struct {
	Endpoint
	version     string
	client      rest.Interface
	serving     atomic.Int64
	incarnation int
}

// New prepares the clients. proxyless are the servers whose own proxy is off although it is tested.
// No connection is made before Start. Close ends everything that Start began.
func New(endpoints []Endpoint, versions map[string]string, proxyless []string, recorder Recorder, status func(string, ...any)) (*Cluster, error) {
	c := &Cluster{
		endpoints: endpoints, servers: map[string]*server{}, proxyless: proxyless, recorder: recorder, status: status, stop: func() {},
	}
	for _, e := range endpoints {
		client, err := kubernetes.NewForConfig(e.Config)
		if err != nil {
			return nil, fmt.Errorf("prepare the client of server %q: %w", e.Name, err)
		}
		c.servers[e.Name] = &server{Endpoint: e, version: versions[e.Name], client: client.RESTClient()}
	}
	return c, nil
}

// Start checks that every server is ready, and watches the servers until Close.
func (c *Cluster) Start(ctx context.Context) error {
	all, probing := errgroup.WithContext(ctx)
	for _, s := range c.servers {
		all.Go(func() error {
			if err := s.probe(probing); err != nil {
				return fmt.Errorf("server %q at %s is not ready: %w", s.Name, s.Config.Host, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	watched, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = cancel
	for _, s := range c.servers {
		c.becameReady(s)
		c.watching.Go(func() { c.watch(watched, s) })
	}
	return nil
}

// Close stops watching the servers. It may be called more than once.
func (c *Cluster) Close() {
	c.stop()
	c.watching.Wait()
}

// URL is the URL of a server for clients.
func (c *Cluster) URL(name string) (string, error) {
	s, err := c.server(name)
	if err != nil {
		return "", err
	}
	return s.Config.Host, nil
}

// Direct is the configuration of the server's context.
func (c *Cluster) Direct(name string) (*rest.Config, error) {
	s, err := c.server(name)
	if err != nil {
		return nil, err
	}
	return rest.CopyConfig(s.Config), nil
}

// Admin is the user of the kubeconfig at the first server, without a host. Other servers may know
// that user by another certificate, or have another authority; see Direct.
func (c *Cluster) Admin() *rest.Config {
	config := rest.CopyConfig(c.endpoints[0].Config)
	config.Host = ""
	return config
}

// User is refused, because the load has only the identity of the kubeconfig.
func (c *Cluster) User(string) (*rest.Config, error) { return nil, errReadOnly }

// Anonymous trusts the cluster and has no identity.
func (c *Cluster) Anonymous() *rest.Config { return rest.AnonymousClientConfig(c.Admin()) }

// Hops returns none, because the audit logs of these servers cannot be read.
func (c *Cluster) Hops(time.Time) ([]history.Hop, error) { return nil, nil }

// RecordPanics records no panic, for the same reason. It records which servers had their proxies
// off: they need not do the work of one, and their peers do not know them.
func (c *Cluster) RecordPanics() {
	for i, name := range c.proxyless {
		c.recorder.Fault(history.Fault{
			ID: i + 1, Kind: history.FaultProxyOff, Server: name, Detail: "its metrics say so", End: c.recorder.Now(),
			Evidence: history.Evidence{Seen: 1},
		})
	}
}

var errReadOnly = errors.New("skewproof did not start these servers, so it changes nothing on them")

// StartServer and the following methods would change a server, so they are refused.
func (c *Cluster) StartServer(context.Context, string, string) error   { return errReadOnly }
func (c *Cluster) StopServer(context.Context, string) error            { return errReadOnly }
func (c *Cluster) KillServer(context.Context, string) error            { return errReadOnly }
func (c *Cluster) PauseServer(context.Context, string) error           { return errReadOnly }
func (c *Cluster) ResumeServer(context.Context, string) error          { return errReadOnly }
func (c *Cluster) ReplaceServer(context.Context, string, string) error { return errReadOnly }
func (c *Cluster) Inject(context.Context, fault.Fault) (cluster.ActiveFault, error) {
	return nil, errReadOnly
}

func (c *Cluster) server(name string) (*server, error) {
	if s, ok := c.servers[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("no server %q among the contexts", name)
}
