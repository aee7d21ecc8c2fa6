// Package cluster is the interface between a run and its control plane. The servers may be
// processes on this machine, nodes of a kind cluster, servers that run already, or simulated ones.
package cluster

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Cluster is what the executor of steps (package step) needs from a backend. Abilities that only
// some backends have are in interfaces of their own: [Advertiser], [Balancer], [Configurer],
// [Controllers], [DiscoveryBreaker], [Drainer], [Extender], [Keeper], [Queuer], [Tester],
// [Witness]. Methods that only real requests need are in [Reachable].
//
// Start must be called first, once. Only [Configurer.Configure] and [Configurer.Dialled] may be
// called before it.
//
// Six methods act on one server. Each returns when the server is in the promised state, or with an
// error when ctx ends or a limit of the backend has passed. After any error except a
// [scenario.RefusedError], [ErrRunning] or [ErrNotRunning], the state of the server is undefined
// and the run is over. The backend records the states of the server. If a server ends by itself,
// the backend records a crash. The six methods may be called concurrently for different servers.
// The executor calls one of them at a time, concurrently with any number of the other methods. A
// backend whose servers skewproof did not start refuses all six methods, and Inject.
type Cluster interface {
	// Start starts everything and returns when every server is ready.
	Start(ctx context.Context) error
	// StartServer starts a server that does not run, and returns when it is ready. An empty version
	// means the version that the server had last. It is an error if the server runs already, paused
	// or not ([ErrRunning]), if it ends before it is ready, or if it turns out to have another
	// version. A server may refuse its setup ([Configurer]): then the error is a
	// [scenario.RefusedError] and the server does not run.
	StartServer(ctx context.Context, name, version string) error
	// StopServer asks a server to end gracefully (SIGTERM), and returns when its process has ended
	// in whatever way. It is an error if the server does not run ([ErrNotRunning]). A paused
	// server may not get the signal, so resume it first.
	StopServer(ctx context.Context, name string) error
	// KillServer ends a server at once (SIGKILL), paused or not, and returns when its process has
	// ended. It is an error if the server does not run ([ErrNotRunning]).
	KillServer(ctx context.Context, name string) error
	// PauseServer stops the execution of a server (SIGSTOP): its connections stay open, but nothing
	// answers. It returns when the signal has been sent. It is an error if the server does not run
	// ([ErrNotRunning]). A paused server stays paused.
	PauseServer(ctx context.Context, name string) error
	// ResumeServer continues a paused server (SIGCONT). It returns when the signal has been sent,
	// perhaps before the server answers again. It is an error if the server does not run
	// ([ErrNotRunning]). It is not an error if the server is not paused.
	ResumeServer(ctx context.Context, name string) error
	// ReplaceServer is StopServer and then StartServer in the same place, with the same address and
	// identity, as in an upgrade. An empty version means the present version of the server. It is
	// an error if the server does not run ([ErrNotRunning]). If a server has its own setup, or must
	// get one, stop, configure and start it instead.
	ReplaceServer(ctx context.Context, name, version string) error
	// Serving is the incarnation of a server that is ready now. It is 0 if the server is not ready
	// or no server has that name. Incarnations count from 1. Each start is a new incarnation. If
	// starts cannot be seen, each time without a gap in which the server is ready is one. A paused
	// server counts as ready. Serving never waits.
	Serving(name string) int
	// Inject puts one fault on one link. When Inject returns, the fault is active, also for open
	// connections. Faults of one link add up. After an error the link is unchanged.
	Inject(ctx context.Context, f fault.Fault) (ActiveFault, error)
}

// ErrRunning and ErrNotRunning are wrapped by errors that say that a server is not in the state
// that a method needs. Only some backends can tell. After such an error nothing has changed.
var (
	ErrRunning    = errors.New("the server runs already")
	ErrNotRunning = errors.New("the server does not run")
)

// ActiveFault is an active fault of a link.
type ActiveFault interface {
	// Heal removes the fault and returns its record, with the real effects of the fault. Other
	// faults of the link stay. Even with an error the record is valid and the fault is gone. The
	// error then means that another program had removed the fault before, or that the link could
	// not be opened again. The ID in the record is the backend's.
	Heal(ctx context.Context) (history.Fault, error)
}

// Configurer is a [Cluster] whose servers can be started with their own setup.
type Configurer interface {
	// Configure sets up the next process of a server that is not running. nil means the setup of
	// the subject. It applies to one start.
	Configure(server string, setup *scenario.Setup) error
	// Dialled is how many connections a server, or [fault.Client], has made so far to the address
	// of a server or to the address that the server advertises. Only differences are meaningful.
	Dialled(from, to string) int
	// Effect is the visible effect of the configuration of a server's present process. It is valid
	// even with an error.
	Effect(ctx context.Context, server string) (history.Effect, error)
}

// Advertiser is a [Cluster] that can read what servers advertise to their peers.
type Advertiser interface {
	// Advertised is the host:port in the endpoint lease of a server. It is empty if there is no
	// lease or the lease has expired. It may be called concurrently.
	Advertised(ctx context.Context, server string) (string, error)
}

// Balancer is a [Cluster] with a load balancer over all servers.
type Balancer interface {
	// BalancerURL is the URL of the load balancer for clients.
	BalancerURL() string
}

// DiscoveryBreaker is a [Cluster] that can make a server's discovery documents fail for its peers.
type DiscoveryBreaker interface {
	// BreakDiscovery makes fetches of a path (/api or /apis), which succeeded so far, fail in the
	// given way.
	BreakDiscovery(server, path string, how fault.DiscoveryFailure) error
	// RestoreDiscovery makes fetches succeed again, and returns how many have failed.
	RestoreDiscovery(server, path string) (failed int, err error)
}

// Administrator is a [Cluster] that can do to its etcd and leases what administrators do. Each
// method returns a description of what it did, for the record of the step.
type Administrator interface {
	// CompactEtcd removes all past revisions, DefragmentEtcd rewrites the file.
	CompactEtcd(ctx context.Context) (effect string, err error)
	DefragmentEtcd(ctx context.Context) (effect string, err error)
	// DeleteLease deletes the identity lease of a server. It is not an error if there is none.
	DeleteLease(ctx context.Context, server string) (effect string, err error)
	// GrantDiscovery says whether servers may read the discovery of their peers. It returns when all
	// servers that are ready know this. Other users keep the right by name.
	GrantDiscovery(ctx context.Context, granted bool) (effect string, err error)
}

// Extender is a [Cluster] that can run a program which serves aggregated APIs.
type Extender interface {
	// Extend makes an extension apiserver serve these APIs. When the program serves, Extend returns
	// its address for kube-apiservers and its authority in PEM. If there are no APIs, Extend ends
	// the program.
	Extend(ctx context.Context, apis []scenario.Definition) (address netip.AddrPort, ca []byte, err error)
}

// Controllers is a [Cluster] that can run a kube-controller-manager.
type Controllers interface {
	// StartControllers starts a kube-controller-manager of a version as a client of a server, or of
	// a load balancer over all servers if the name is empty. It first stops one that runs. It
	// returns when the program is healthy. The run is over if the program later ends by itself too
	// often.
	StartControllers(ctx context.Context, version, through string) error
	// StartCandidate starts a kube-controller-manager with leader election, as a client of a server,
	// beside those that run already. It first stops one that is a client of the same server. Such a
	// program ends by itself whenever it loses its leadership, and is started again.
	StartCandidate(ctx context.Context, version, through string) error
	// StopControllers stops every kube-controller-manager that runs, and returns when all have ended.
	StopControllers(ctx context.Context) error
}

// Tester is a [Cluster] that can run Kubernetes' own end-to-end tests.
type Tester interface {
	// StartTests starts tests of a version as a client of a server, or of a load balancer over all
	// servers if the name is empty. It returns when they have been started. They end with the
	// cluster.
	StartTests(ctx context.Context, version, through string, t scenario.Tests) error
	// AwaitTests returns when the tests have ended and have written their results. Failed specs are
	// not an error. If tests take longer than the limit, AwaitTests ends them, and the error says
	// so.
	AwaitTests(ctx context.Context, limit time.Duration) error
}

// Witness is a [Cluster] whose etcd can be read, and whose servers log their requests.
type Witness interface {
	// Objects calls emit for every API object in etcd and for every change of one, until ctx ends.
	// Then it also emits the changes that etcd has made by then. now is the time of the run. An
	// error says that changes are missing.
	Objects(ctx context.Context, now func() history.Time, emit func(history.Object)) error
	// Requests are the logged requests that neither the load nor a server sent; see
	// [history.Request]. epoch is the wall time of the run's start. load reports whether an ID is
	// that of a request of the load.
	Requests(epoch time.Time, load func(id string) bool) ([]history.Request, error)
}

// Keeper is a [Cluster] that can be used for several plans, one after the other. Callers can
// compare and remove keys in its etcd, around all links and servers.
type Keeper interface {
	// Keys are the keys of everything that servers keep in etcd, sorted, without events.
	Keys(ctx context.Context) ([]string, error)
	// RemoveKeys removes these keys from etcd. It is not an error if one does not exist.
	RemoveKeys(ctx context.Context, keys []string) error
	// Forget empties the logs from which Hops and Requests read, and makes incarnations count from 1
	// again. No server may run.
	Forget() error
}

// Drainer is a [Cluster] that knows which servers it has asked to stop.
type Drainer interface {
	// Draining is the record of the request to stop of a server's process that has not ended. The
	// process may still serve. It is nil if there is none. Callers must not change it. Draining never
	// waits.
	Draining(server string) *history.Lifecycle
}

// Queuer is a [Cluster] that measures how long the threads of a server's process were runnable
// without getting a CPU, since the process started. The value is the sum over all threads.
type Queuer interface {
	// Queued is 0 for a server that does not run, or if nothing is counted. It may be called
	// concurrently.
	Queued(server string) time.Duration
}

// Reachable is a [Cluster] whose servers answer on a network and log their requests, unlike those
// of the simulator. RecordPanics and Hops must be called last, even after a failure.
type Reachable interface {
	Cluster
	// URL is the URL of a server for clients. Its path leads through the client's link.
	URL(name string) (string, error)
	// Direct is the administrator's path to a server, around links and faults. It is for ground
	// truth.
	Direct(name string) (*rest.Config, error)
	// Admin is the administrator's identity, without a host.
	Admin() *rest.Config
	// User is the identity of a user with a client certificate, without a host or any rights.
	User(name string) (*rest.Config, error)
	// Anonymous trusts the cluster and has no identity of its own. It is for bearer tokens.
	Anonymous() *rest.Config
	// Hops are the servers' log entries of the requests that they handled. epoch is the wall time
	// of the run's start. With an error, Hops has the entries that could be read.
	Hops(epoch time.Time) ([]history.Hop, error)
	// RecordPanics records panics that servers survived.
	RecordPanics()
}
