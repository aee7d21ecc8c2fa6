package traffic

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
)

// Options are the options of a [Load].
type Options struct {
	// QPS is the number of requests a second, in equal shares for all servers. It is positive.
	QPS float64
	// Seed of all choices. Seed and probes alone decide the sequence of requests to one server.
	Seed uint64
	// InFlight is the maximum number of requests that wait for one server. It keeps a server that
	// does not answer from slowing the load on the others. Default 512.
	InFlight int
	// Profile says which requests get more weight. The zero value is the general load.
	Profile scenario.Traffic
	// Nodes is the share, in percent, of requests that a kubelet sends. There must be an identity of
	// [workload.Node] then.
	Nodes int
	// ReadOnly sends only requests that read. Nothing is created or changed, not even as a dry run.
	ReadOnly bool
}

// Load is background traffic: create it with NewLoad, give it probes, and Run it once. SetProbes is
// safe for concurrent use.
type Load struct {
	clients *Clients
	options Options
	lanes   []*workload.Chooser // by target
	probes  atomic.Pointer[[]workload.Probe]
}

// NewLoad prepares a load through the clients. Until SetProbes the load sends only discovery
// requests.
func NewLoad(clients *Clients, options Options) *Load {
	options.QPS = workload.Rate(options.Profile, options.QPS)
	options.InFlight = cmp.Or(options.InFlight, 512)
	var users []string
	for _, identity := range clients.identities {
		if identity.User != workload.Node {
			users = append(users, identity.User)
		}
	}
	l := &Load{clients: clients, options: options}
	for i, target := range clients.targets {
		l.lanes = append(l.lanes, workload.NewChooser(workload.Options{
			Lane: target.Server, Choices: rand.New(rand.NewPCG(options.Seed, uint64(i))), Profile: options.Profile,
			Users: users, Nodes: options.Nodes, ReadOnly: options.ReadOnly,
		}))
	}
	l.SetProbes(nil)
	return l
}

// SetProbes replaces the probes. Call it whenever the servers' discovery has changed.
func (l *Load) SetProbes(probes []workload.Probe) {
	probes = slices.Clone(probes)
	l.probes.Store(&probes)
}

// Run sends requests until ctx ends, and returns when every request has ended and is recorded.
// Requests that ctx cut off are recorded as canceled. The connections stay with the [Clients].
func (l *Load) Run(ctx context.Context) {
	var lanes sync.WaitGroup
	for i, target := range l.clients.targets {
		lanes.Go(func() { l.runLane(ctx, l.lanes[i], target.Server) })
	}
	lanes.Wait()
}

// runLane is the load on one server. One goroutine chooses all requests, because choices do not
// depend on answers.
func (l *Load) runLane(ctx context.Context, chooser *workload.Chooser, server string) {
	share := l.options.QPS / float64(len(l.clients.targets))
	limiter := rate.NewLimiter(rate.Limit(share), max(1, int(share/10)))

	var requests errgroup.Group
	requests.SetLimit(l.options.InFlight)
	var using *[]workload.Probe
	for limiter.Wait(ctx) == nil {
		if current := l.probes.Load(); current != using {
			using = current
			chooser.Use(*current)
		}
		request := chooser.Next()
		requests.Go(func() error {
			l.send(ctx, server, request)
			return nil
		})
	}
	_ = requests.Wait() // its functions never return an error
}

// send sends a request to a server, and then again to every other server if the answers are
// compared.
func (l *Load) send(ctx context.Context, server string, request workload.Request) {
	l.clients.Send(ctx, server, request, history.PurposeLoad, workload.Timeout)
	again, more := request.Again()
	for _, target := range l.clients.targets {
		if more && target.Server != server {
			l.clients.Send(ctx, target.Server, again, history.PurposeLoad, workload.Timeout)
		}
	}
}
