// Package cluster is the interface between a run and its control plane, whatever the servers are:
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

// Cluster is what the executor of steps (package step) needs of a backend. What only some backends
// can do is in interfaces of their own: [Advertiser], [Balancer], [Configurer], [Controllers],
// [DiscoveryBreaker], [Extender], [Queuer], [Tester], [Witness]; what only real requests need is in
// [Reachable].
//
// Start comes first, once; only [Configurer.Configure] and [Configurer.Dialled] may precede it.
//
// The six methods that act on one server return when the server is as they say, or with an error
// when ctx ends or a limit of the backend has passed. After any error but a
// [scenario.RefusedError], [ErrRunning] or [ErrNotRunning] the state of the server is undefined and
// the run is over. The backend records what becomes of the server, and records it as a crash when a
// server ends by itself. The six may be called concurrently for different servers; the executor
// calls one at a time, beside any number of the other methods. A backend whose servers belong to
// somebody else refuses all six, and Inject.
type Cluster interface {
	// Start brings everything up and returns when every server is ready.
	Start(ctx context.Context) error
	// StartServer starts a server that does not run, and returns when it is ready. An empty version
	// is the one that the server had last. It is an error if the server runs already, paused or not
	// ([ErrRunning]), if it ends before it is ready, or if it is of another version then. A server
	// that refuses its setup ([Configurer]) does not run then: [scenario.RefusedError].
	StartServer(ctx context.Context, name, version string) error
	// StopServer asks a server to end gracefully (SIGTERM), and returns when all its processes have
	// ended, however they did. It is an error if the server does not run ([ErrNotRunning]). A
	// paused server may not get the signal: resume it first.
	StopServer(ctx context.Context, name string) error
	// KillServer ends a server at once (SIGKILL), paused or not, and returns when all its processes
	// have ended. It is an error if the server does not run ([ErrNotRunning]).
	KillServer(ctx context.Context, name string) error
	// PauseServer stops the execution of a server (SIGSTOP): its connections stay open and nothing
	// answers. It returns when the signal has been sent. It is an error if the server does not run
	// ([ErrNotRunning]); a paused server stays paused.
	PauseServer(ctx context.Context, name string) error
	// ResumeServer lets a paused server run on (SIGCONT). It returns when the signal has been sent,
	// perhaps before the server answers again. It is an error if the server does not run
	// ([ErrNotRunning]), and none if it is not paused.
	ResumeServer(ctx context.Context, name string) error
	// ReplaceServer is StopServer and then StartServer in the same place, with the same address and
	// identity, as in an upgrade. An empty version is the one that the server has. It is an error
	// if the server does not run ([ErrNotRunning]). A server that has a setup of its own, or is to
	// get one, must be stopped, configured and started instead.
	ReplaceServer(ctx context.Context, name, version string) error
	// Serving is the incarnation of a server that is ready at this moment; 0 if the server is not
	// ready or there is none of that name. Incarnations are counted from 1: each start is one, or,
	// where starts cannot be seen, each time without a gap in which the server is ready. A paused
	// server counts as ready. Serving never waits.
	Serving(name string) int
	// Inject puts one fault on one link; the fault is in force, for open connections too, when
	// Inject returns. Faults of one link add up. After an error the link is as it was.
	Inject(ctx context.Context, f fault.Fault) (ActiveFault, error)
}

// ErrRunning and ErrNotRunning are wrapped by errors about a server that is not in the state that a
// method needs, of backends that can tell. Nothing has changed then.
var (
	ErrRunning    = errors.New("the server runs already")
	ErrNotRunning = errors.New("the server does not run")
)

// ActiveFault is a fault of a link that is on.
type ActiveFault interface {
	// Heal takes the fault away and returns its record, with what the fault really touched. Other
	// faults of the link stay. Even with an error the record is valid and the fault is gone:
	// somebody else had removed the fault before, or the link could not be opened again. The ID in
	// the record is the backend's.
	Heal(ctx context.Context) (history.Fault, error)
}

// Configurer is a [Cluster] whose servers can be started with a setup of their own.
type Configurer interface {
	// Configure sets up the next process of a server, which is not running; nil: as the subject
	// says. It holds for one start.
	Configure(server string, setup *scenario.Setup) error
	// Dialled is how many connections a server, or [fault.Client], has made so far to where a
	// server is or says that it is. Only differences mean something.
	Dialled(from, to string) int
	// Effect is what the configuration of a server's present process visibly does, even with an
	// error.
	Effect(ctx context.Context, server string) (history.Effect, error)
}

// Advertiser is a [Cluster] that can look at what servers advertise to their peers.
type Advertiser interface {
	// Advertised is the host:port in the endpoint lease of a server. It is empty if there is none, or
	// an expired one. It may be called concurrently.
	Advertised(ctx context.Context, server string) (string, error)
}

// Balancer is a [Cluster] with a load balancer over all servers.
type Balancer interface {
	// BalancerURL is what clients dial to reach the load balancer.
	BalancerURL() string
}

// DiscoveryBreaker is a [Cluster] that can let discovery documents of a server fail for its peers.
type DiscoveryBreaker interface {
	// BreakDiscovery makes fetches of a path (/api or /apis), which succeeded so far, fail that
	// way.
	BreakDiscovery(server, path string, how fault.DiscoveryFailure) error
	// RestoreDiscovery lets fetches succeed again, and returns how many have failed.
	RestoreDiscovery(server, path string) (failed int, err error)
}

// Extender is a [Cluster] that can run a program behind aggregated APIs.
type Extender interface {
	// Extend lets an extension apiserver serve these APIs. It returns, when the program serves, its
	// address for kube-apiservers and its authority in PEM. Without APIs it ends.
	Extend(ctx context.Context, apis []scenario.Definition) (address netip.AddrPort, ca []byte, err error)
}

// Controllers is a [Cluster] that can run a kube-controller-manager.
type Controllers interface {
	// StartControllers starts a kube-controller-manager of a version as a client of a server, or, if
	// the name is empty, of a load balancer over all servers. One that runs is stopped first. It
	// returns when the program is healthy. The run is over if the program ends by itself after that.
	StartControllers(ctx context.Context, version, through string) error
	// StopControllers stops it, if it runs, and returns when it has ended.
	StopControllers(ctx context.Context) error
}

// Tester is a [Cluster] that can run Kubernetes' own end-to-end tests.
type Tester interface {
	// StartTests starts tests of a version as a client of a server, or, if the name is empty, of a load
	// balancer over all servers. It returns when they have been started. They end with the cluster.
	StartTests(ctx context.Context, version, through string, t scenario.Tests) error
	// AwaitTests returns when the tests have ended and have written their results. Specs that failed
	// are no error. Tests that take longer than the limit are ended, and the error says so.
	AwaitTests(ctx context.Context, limit time.Duration) error
}

// Witness is a [Cluster] whose etcd can be read, and whose servers log who asked for what.
type Witness interface {
	// Objects calls emit for every API object in etcd and for every change of one, until ctx ends,
	// and then for those changes that etcd has made by then. now is the time of the run. An error
	// says that changes are missing.
	Objects(ctx context.Context, now func() history.Time, emit func(history.Object)) error
	// Requests are those that servers logged and that neither the load nor a server sent; see
	// [history.Request]. epoch is the wall time of the run's start, and load tells the load's by ID.
	Requests(epoch time.Time, load func(id string) bool) ([]history.Request, error)
}

// Queuer is a [Cluster] that knows for how long the threads of a server's processes were runnable
// without getting a CPU, since they were started; the sum over all threads.
type Queuer interface {
	// Queued is 0 for a server that does not run, or without counts. It may be called concurrently.
	Queued(server string) time.Duration
}

// Reachable is a [Cluster] whose servers answer on a network and log what they were asked, unlike
// the simulator's. RecordPanics and Hops come last, whatever has failed.
type Reachable interface {
	Cluster
	// URL is what clients dial to reach a server. The path leads through the client's link.
	URL(name string) (string, error)
	// Direct is the administrator's path to the kube-apiserver itself, around links, faults and its
	// sidecar: for ground truth.
	Direct(name string) (*rest.Config, error)
	// FrontDoor is the administrator's path, around links and faults, to what clients meet.
	FrontDoor(name string) (*rest.Config, error)
	// Admin is the administrator's identity, without a host.
	Admin() *rest.Config
	// User is the identity of a user with a client certificate, without a host or any rights.
	User(name string) (*rest.Config, error)
	// Anonymous trusts the cluster and has no identity of its own: for bearer tokens.
	Anonymous() *rest.Config
	// Hops are what servers logged of the requests that they handled; epoch is the wall time of the
	// run's start. With an error they are those that could be read.
	Hops(epoch time.Time) ([]history.Hop, error)
	// RecordPanics records panics that servers survived.
	RecordPanics()
}
