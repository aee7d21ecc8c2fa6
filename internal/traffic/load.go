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
)

// DefaultTimeout of one request. It is longer than history.DefaultBounds.Unavailable allows a server, so that a late 503
// is seen as that and not as a timeout.
const DefaultTimeout = 35 * time.Second

// Options say how a [Load] presses on the servers. Zero fields take the defaults named at each.
type Options struct {
	// QPS is the number of requests a second over all servers together; each gets an equal share. Default 200.
	QPS float64
	// Seed of all choices. The sequence of requests to one server is a function of seed and probes alone.
	Seed uint64
	// InFlight bounds the requests waiting for one server, so that a silent one takes no strength from the load on the
	// others. Default 512.
	InFlight int
	// Timeout of one request, watches included. Default: DefaultTimeout.
	Timeout time.Duration
	// Mix of what is asked for. The zero value means DefaultMix, or what suits the profile.
	Mix Mix
	// Profile is where the weight of the load lies. The zero value is the general load.
	Profile Profile
	// ReadOnly keeps to requests that read: no object is made, and nothing is asked to change, dry run or not.
	ReadOnly bool
}

// Load is background traffic: make it with NewLoad, give it probes, Run it. All methods may be called concurrently.
type Load struct {
	clients *Clients
	options Options
	probes  atomic.Pointer[[]Probe]
}

// NewLoad prepares a load that goes out through the clients. Until SetProbes it asks for discovery only.
func NewLoad(clients *Clients, options Options) (*Load, error) {
	options.QPS = cmp.Or(options.QPS, 200)
	options.InFlight = cmp.Or(options.InFlight, 512)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	if err := options.Profile.check(); err != nil {
		return nil, fmt.Errorf("prepare load: %w", err)
	}
	options.adapt()
	options.Mix = cmp.Or(options.Mix, DefaultMix)
	if options.QPS < 0 || options.InFlight < 0 || options.Timeout < 0 {
		return nil, fmt.Errorf("prepare load: rate %v/s, %d in flight and timeout %s must be positive",
			options.QPS, options.InFlight, options.Timeout)
	}
	if err := options.Mix.check(); err != nil {
		return nil, fmt.Errorf("prepare load: %w", err)
	}
	l := &Load{clients: clients, options: options}
	l.SetProbes(nil)
	return l, nil
}

// SetProbes replaces what is asked for, from the next request on. Call it whenever what servers serve has changed.
func (l *Load) SetProbes(probes []Probe) {
	if l.options.ReadOnly {
		probes = readable(probes)
	}
	probes = slices.Clone(probes)
	l.probes.Store(&probes)
}

// Run sends requests until ctx ends, and returns when every one of them has ended and been recorded; those that ctx
// cut off are recorded as canceled. No response is an error of Run: it returns nil, in the form that errgroup takes. The
// connections stay with the [Clients].
func (l *Load) Run(ctx context.Context) error {
	var lanes sync.WaitGroup
	for i, target := range l.clients.targets {
		lanes.Go(func() { l.runLane(ctx, uint64(i), target.Server) })
	}
	lanes.Wait()
	return nil
}

// runLane is the load on one server. One goroutine chooses, so that choices do not depend on how fast answers come.
func (l *Load) runLane(ctx context.Context, index uint64, server string) {
	random := rand.New(rand.NewPCG(l.options.Seed, index))
	choose := newChooser(server, random, l.options.Mix)
	choose.profile = l.options.Profile
	share := l.options.QPS / float64(len(l.clients.targets))
	limiter := rate.NewLimiter(rate.Limit(share), max(1, int(share/10)))

	var requests errgroup.Group
	requests.SetLimit(l.options.InFlight)
	var using *[]Probe
	for limiter.Wait(ctx) == nil {
		if current := l.probes.Load(); current != using {
			using = current
			choose.use(*current)
		}
		identity := l.clients.identities[random.IntN(len(l.clients.identities))]
		request := choose.next()
		if request.first {
			identity = l.clients.identities[0]
		}
		if l.options.Profile == ProfileHostile && random.IntN(100) < hostileShare {
			request = request.forged(random)
		}
		c := l.clients.get(identity.Name, server)
		requests.Go(func() error {
			attempt, cancel := withAttemptTimeout(ctx, l.options.Timeout)
			defer cancel()
			request.send(withOrigin(attempt, request.client, history.PurposeLoad), c)
			return nil
		})
	}
	_ = requests.Wait() // its functions return no errors
}
