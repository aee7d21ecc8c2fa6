package existing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

// patience is how long one question may take.
const patience = 10 * time.Second

// Versions asks every server what it is, by its name. The error says which one did not answer.
func Versions(ctx context.Context, ways []Way) (map[string]string, error) {
	versions := map[string]string{}
	for _, way := range ways {
		info, err := version(ctx, way.Direct)
		if err != nil {
			return nil, fmt.Errorf("ask server %q at %s for its version: %w", way.Name, way.Direct.Host, err)
		}
		versions[way.Name] = info.GitVersion
	}
	return versions, nil
}

func version(ctx context.Context, config *rest.Config) (*apimachineryversion.Info, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	asked, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.ServerVersionWithContext(asked)
}

// Recorder receives what is seen of the servers. [history.Recorder] is one.
type Recorder interface {
	Lifecycle(history.Lifecycle)
	Now() history.Time
}

// Cluster is a control plane that somebody else runs. Everything that would change it is an error.
type Cluster struct {
	ways     []Way
	servers  map[string]*server
	recorder Recorder
	status   func(string, ...any)

	stop     context.CancelFunc
	watching sync.WaitGroup
}

// server is one apiserver as an outsider sees it.
type server struct {
	Way
	version     string
	ready       []rest.Interface // that have to say that they are ready: the kube-apiserver, and the proxy if that is another process
	serving     atomic.Int64
	incarnation int
}

// New prepares the clients. No connection is made before Start. Close ends what Start began.
func New(ways []Way, versions map[string]string, recorder Recorder, status func(string, ...any)) (*Cluster, error) {
	c := &Cluster{ways: ways, servers: map[string]*server{}, recorder: recorder, status: status, stop: func() {}}
	for _, way := range ways {
		s := &server{Way: way, version: versions[way.Name]}
		doors := []*rest.Config{way.Direct}
		if way.Door != way.Direct {
			doors = append(doors, way.Door)
		}
		for _, door := range doors {
			client, err := kubernetes.NewForConfig(door)
			if err != nil {
				return nil, fmt.Errorf("prepare the client of server %q: %w", way.Name, err)
			}
			s.ready = append(s.ready, client.RESTClient())
		}
		c.servers[way.Name] = s
	}
	return c, nil
}

// Start finds out whether every server is ready, and keeps looking until Close.
func (c *Cluster) Start(ctx context.Context) error {
	all, asked := errgroup.WithContext(ctx)
	for _, s := range c.servers {
		all.Go(func() error {
			if err := s.isReady(asked); err != nil {
				return fmt.Errorf("server %q at %s is not ready: %w", s.Name, s.Door.Host, err)
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
		c.came(s)
		c.watching.Go(func() { c.watch(watched, s) })
	}
	return nil
}

// Close ends the watching of servers. It may be called more than once.
func (c *Cluster) Close() {
	c.stop()
	c.watching.Wait()
}

// URL is what clients dial.
func (c *Cluster) URL(name string) (string, error) {
	s, err := c.server(name)
	if err != nil {
		return "", err
	}
	return s.Door.Host, nil
}

// Direct is the way to the kube-apiserver itself.
func (c *Cluster) Direct(name string) (*rest.Config, error) {
	return c.way(name, func(s *server) *rest.Config { return s.Way.Direct })
}

// FrontDoor is the way to what clients meet.
func (c *Cluster) FrontDoor(name string) (*rest.Config, error) {
	return c.way(name, func(s *server) *rest.Config { return s.Door })
}

func (c *Cluster) way(name string, of func(*server) *rest.Config) (*rest.Config, error) {
	s, err := c.server(name)
	if err != nil {
		return nil, err
	}
	return rest.CopyConfig(of(s)), nil
}

// Admin is the user of the kubeconfig, without a host, who trusts the authorities of all servers.
func (c *Cluster) Admin() *rest.Config {
	config := rest.CopyConfig(c.ways[0].Door)
	config.Host, config.CAData = "", authorities(c.ways)
	return config
}

// User and Anonymous are never asked for: the load has one identity, that of the kubeconfig.
func (c *Cluster) User(string) (*rest.Config, error) { return nil, errNotOurs }

// Anonymous trusts the cluster and has no identity.
func (c *Cluster) Anonymous() *rest.Config {
	return rest.AnonymousClientConfig(c.Admin())
}

// Hops are none: audit logs of other people's servers are not at hand.
func (c *Cluster) Hops(time.Time) ([]history.Hop, error) { return nil, nil }

// RecordPanics does nothing, for the same reason.
func (c *Cluster) RecordPanics() {}

var errNotOurs = errors.New("the servers are somebody else's: nothing is changed on them")

// The methods below would change something.

// StartServer is refused.
func (c *Cluster) StartServer(context.Context, string, string) error { return errNotOurs }

// StopServer is refused.
func (c *Cluster) StopServer(context.Context, string) error { return errNotOurs }

// KillServer is refused.
func (c *Cluster) KillServer(context.Context, string) error { return errNotOurs }

// PauseServer is refused.
func (c *Cluster) PauseServer(context.Context, string) error { return errNotOurs }

// ResumeServer is refused.
func (c *Cluster) ResumeServer(context.Context, string) error { return errNotOurs }

// ReplaceServer is refused.
func (c *Cluster) ReplaceServer(context.Context, string, string) error { return errNotOurs }

// Inject is refused.
func (c *Cluster) Inject(context.Context, fault.Fault) (cluster.ActiveFault, error) {
	return nil, errNotOurs
}

func (c *Cluster) server(name string) (*server, error) {
	if s, ok := c.servers[name]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("no server %q among the contexts", name)
}
