package traffic

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
)

// Options say how a [Load] presses on the servers. Zero fields take the defaults named at each.
type Options struct {
	// QPS is the number of requests a second, in equal shares for all servers. Default 200.
	QPS float64
	// Seed of all choices. Seed and probes alone decide the sequence of requests to one server.
	Seed uint64
	// InFlight bounds the requests waiting for one server, so that a silent one takes no strength
	// from the load on the others. Default 512.
	InFlight int
	// Timeout of one request, watches included. Default: [workload.Timeout].
	Timeout time.Duration
	// Mix of what is asked for. The zero value is that of the profile.
	Mix workload.Mix
	// Profile is where the weight of the load lies. The zero value is the general load.
	Profile scenario.Traffic
	// ReadOnly keeps to requests that read: nothing is made or changed, not even as a dry run.
	ReadOnly bool
}

// Load is background traffic: make it with NewLoad, give it probes, Run it once. SetProbes may be
// called concurrently.
type Load struct {
	clients *Clients
	options Options
	lanes   []*workload.Chooser // by target
	probes  atomic.Pointer[[]workload.Probe]
}

// NewLoad prepares a load through the clients. Until SetProbes it asks for discovery only.
func NewLoad(clients *Clients, options Options) (*Load, error) {
	options.QPS = workload.Rate(options.Profile, cmp.Or(options.QPS, 200))
	options.InFlight = cmp.Or(options.InFlight, 512)
	options.Timeout = cmp.Or(options.Timeout, workload.Timeout)
	if options.QPS < 0 || options.InFlight < 0 || options.Timeout < 0 {
		return nil, fmt.Errorf("prepare load: rate %v/s, %d in flight and timeout %s must be positive",
			options.QPS, options.InFlight, options.Timeout)
	}
	var users []string
	for _, identity := range clients.identities {
		users = append(users, identity.User)
	}
	l := &Load{clients: clients, options: options}
	for i, target := range clients.targets {
		chooser, err := workload.NewChooser(workload.Options{
			Lane: target.Server, Choices: rand.New(rand.NewPCG(options.Seed, uint64(i))), Profile: options.Profile, Mix: options.Mix,
			Users: users, ReadOnly: options.ReadOnly,
		})
		if err != nil {
			return nil, fmt.Errorf("prepare load: %w", err)
		}
		l.lanes = append(l.lanes, chooser)
	}
	l.SetProbes(nil)
	return l, nil
}

// SetProbes replaces what is asked for. Call it whenever what servers serve has changed.
func (l *Load) SetProbes(probes []workload.Probe) {
	probes = slices.Clone(probes)
	l.probes.Store(&probes)
}

// Run sends requests until ctx ends, and returns when every one of them has ended and been
// recorded; those that ctx cut off are recorded as canceled. No response is an error of Run: it
// returns nil, in the form that errgroup takes. The connections stay with the [Clients].
func (l *Load) Run(ctx context.Context) error {
	var lanes sync.WaitGroup
	for i, target := range l.clients.targets {
		lanes.Go(func() { l.runLane(ctx, l.lanes[i], target.Server) })
	}
	lanes.Wait()
	return nil
}

// runLane is the load on one server. One goroutine chooses: choices do not depend on answers.
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
			l.clients.Send(ctx, server, request, history.PurposeLoad, l.options.Timeout)
			return nil
		})
	}
	_ = requests.Wait() // its functions return no errors
}
