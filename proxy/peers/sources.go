package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/proxy"
)

// Config says which sources there are. The policy of the Store says how they behave.
type Config struct {
	Store *proxy.Store // what the sources feed; required

	// Address is where the local server tells its peers that it is. Empty: it tells nobody. See [RosterConfig].
	Address string

	// Client watches leases, and StorageVersion objects under a policy that uses them. Nil: neither; there are only the Static peers.
	Client kubernetes.Interface
	// Dynamic watches CustomResourceDefinitions and APIServices. Nil: there are no extensions.
	Dynamic dynamic.Interface
	// Static are peers by configuration.
	Static []StaticPeer

	// PeerTransport reaches peers: verified TLS, with a front-proxy certificate. The request's URL is https and the peer's address; identity
	// headers and the hop header are added here. Required, but under a policy that fetches nothing from peers (StorageVersions).
	PeerTransport http.RoundTripper
	// LocalTransport and LocalURL reach the local server, likewise. Nil: nobody here asks the local server what it serves.
	LocalTransport http.RoundTripper
	LocalURL       *url.URL
	// Identity names the headers that carry the identity as which documents are fetched, system:apiserver. Zero fields are
	// kube-apiserver's defaults.
	Identity proxy.IdentityHeaders

	// Random draws from [0, 1), for jitter. Nil: a generator of its own. It is called by one goroutine at a time.
	Random func() float64
	// Metrics counts failures. Nil: nobody does.
	Metrics *Metrics
	// FetchAnswered is told the status code of each answer to a fetch from a peer (upstream counts them in
	// apiserver_rerouted_request_total, without group, version and resource). Nil: nobody is. It is called concurrently.
	FetchAnswered func(code int)
	Logger        *slog.Logger // nil: none
}

// Sources are all the sources of one server.
type Sources struct {
	config   Config
	policy   proxy.Policy
	log      *slog.Logger
	leases   *leaseWatch
	fetcher  *fetcher // nil under a policy that fetches nothing
	local    *local   // nil if nobody asks the local server
	watchers []watcher
}

// watcher is a named source that delivers what existed at its start and then what changes.
type watcher struct {
	name string
	run  func(ctx context.Context, synced func()) error
}

// New makes the sources of one server, which [Sources.Run] starts. It dials nothing.
func New(config Config) (*Sources, error) {
	if config.Store == nil {
		return nil, errors.New("make sources: Config.Store is needed")
	}
	table := config.Store.Table()
	s := &Sources{config: config, policy: table.Policy(), log: config.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.makeFetchers(); err != nil {
		return nil, err
	}
	s.leases = &leaseWatch{
		log:  s.log,
		tell: s.tell,
		roster: NewRoster(RosterConfig{
			Self: table.Self(), Address: config.Address, Static: config.Static, StaleAfter: s.policy.Knowledge.StaleAfter,
		}),
	}
	if s.fetcher != nil {
		s.fetcher.found = s.leases.found
	}
	return s, s.makeWatchers()
}

func (s *Sources) makeFetchers() error {
	c, fetching := s.config, s.policy.Fetching
	if !s.policy.Knowledge.StorageVersions {
		if c.PeerTransport == nil {
			return fmt.Errorf("make sources: Config.PeerTransport is needed under the policy %s, which learns from peers' discovery", s.policy.Name)
		}
		random := c.Random
		if random == nil {
			random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())).Float64
		}
		s.fetcher = newFetcher(c.Store, &discoveryClient{
			Transport: c.PeerTransport, Identity: c.Identity, Hop: true,
			// Who reads the older form of aggregated discovery reads what is older still as well.
			Accept: fetching.Accept, Legacy: strings.Contains(fetching.Accept, "v=v2beta1"),
			EmptyIsDocument: s.policy.Quirks.EmptyIsDocument, Timeout: fetching.Timeout, Together: fetching.Together, Answered: c.FetchAnswered,
		}, random, c.Metrics, s.log)
	}
	if (c.LocalTransport == nil) != (c.LocalURL == nil) {
		return errors.New("make sources: Config.LocalTransport and Config.LocalURL are needed both, or neither")
	}
	if c.LocalTransport == nil || fetching.LocalInterval <= 0 {
		return nil
	}
	s.local = &local{
		store: c.Store, server: *c.LocalURL, interval: fetching.LocalInterval, demand: make(chan struct{}, 1), log: s.log,
		client: &discoveryClient{
			Transport: c.LocalTransport, Identity: c.Identity, Accept: localAccept, Legacy: true,
			Timeout: cmp.Or(fetching.Timeout, localTimeout), Together: true,
		},
	}
	return nil
}

func (s *Sources) makeWatchers() error {
	c := s.config
	if c.Client != nil {
		failed := s.watchFailed("leases", failedLeaseList)
		s.watchers = append(s.watchers, watcher{"leases", func(ctx context.Context, synced func()) error {
			return s.leases.run(ctx, c.Client, failed, synced)
		}})
	}
	if c.Client != nil && s.policy.Knowledge.StorageVersions {
		w := watchStorageVersions(c.Store, c.Client, s.log)
		s.watchers = append(s.watchers, watcher{"StorageVersions", func(ctx context.Context, synced func()) error {
			return w.run(ctx, s.watchFailed("StorageVersions", ""), synced)
		}})
	}
	if c.Dynamic != nil && s.policy.Knowledge.Extensions != proxy.ExtensionsIgnored {
		w, err := watchExtensions(c.Store, c.Dynamic, func(e proxy.Extensions) {
			if s.fetcher != nil {
				s.fetcher.learnt([]proxy.Event{e})
			}
			s.RefreshLocal()
		})
		if err != nil {
			return fmt.Errorf("make sources: %w", err)
		}
		s.watchers = append(s.watchers, watcher{"extensions", func(ctx context.Context, synced func()) error {
			return w.run(ctx, s.watchFailed("extensions", ""), synced)
		}})
	}
	if s.local != nil {
		s.watchers = append(s.watchers, watcher{"the local server", func(ctx context.Context, synced func()) error {
			s.local.run(ctx, synced)
			return nil
		}})
	}
	return nil
}

// watchFailed logs that a watch failed, which client-go then tries again, and counts it if upstream does.
func (s *Sources) watchFailed(what, kind string) func(error) {
	return func(err error) {
		s.log.Warn("watch failed; trying again", "of", what, "err", err)
		if kind != "" {
			s.config.Metrics.failed(kind)
		}
	}
}

// tell passes on what was learnt of leases and addresses: first to the store, from which a round of fetches then takes them.
func (s *Sources) tell(events []proxy.Event) {
	s.config.Store.Observe(events...)
	if s.fetcher != nil {
		s.fetcher.learnt(events)
	}
}

// Run starts every source, observes [proxy.Synced] when all that existed at the start is known, and returns when the context has ended and
// every goroutine has. It may be called once.
//
// All is known when every watch has delivered what existed, the local server has said what it serves and, under a policy with
// WaitForPeers, every peer that was live then has been asked once, whether it answered or not.
//
// The error is of what cannot be started at all; what fails later is logged and tried again.
func (s *Sources) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	var delivered sync.WaitGroup
	s.leases.begin()
	for _, w := range s.watchers {
		delivered.Add(1)
		var once sync.Once
		done := func() { once.Do(delivered.Done) }
		group.Go(func() error {
			defer done() // so that nobody waits for what has ended
			return w.run(ctx, done)
		})
	}
	if s.fetcher != nil {
		group.Go(func() error { s.fetcher.run(ctx); return nil })
	}
	group.Go(func() error { s.runTicks(ctx); return nil })
	if s.config.Client != nil {
		group.Go(func() error { s.superviseLeases(ctx); return nil })
	}
	group.Go(func() error {
		delivered.Wait()
		if s.fetcher != nil && s.policy.Knowledge.WaitForPeers {
			s.fetcher.waitUntilAllAsked(ctx)
		}
		if ctx.Err() == nil {
			s.config.Store.Observe(proxy.Synced{})
		}
		return nil
	})
	return group.Wait()
}

// RefreshLocal asks the local server again at once what it serves. It does not wait for the answer.
func (s *Sources) RefreshLocal() {
	if s.local != nil {
		notify(s.local.demand)
	}
}

// HasSynced reports whether all that existed at the start is known; see [Sources.Run].
func (s *Sources) HasSynced() bool { return s.config.Store.Table().Synced() }

// Every kube-apiserver, the local one included, renews its identity lease each 10 s, and every sidecar its endpoint lease each 5 s. So a
// lease watch on which no lease changes for longer is cut off from the API server, or hangs.
const (
	watchStalls = 20 * time.Second // until the store is told
	watchGap    = 12 * time.Second // after which every peer is asked again
)

// superviseLeases tells the store when the lease watch stalls and when it resumes. After a gap it has every peer asked again, because no
// event tells what came and went in the gap: a peer's document of that time may list a custom resource that was deleted since.
func (s *Sources) superviseLeases(ctx context.Context) {
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	gap := false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.leases.mu.Lock()
			heard := s.leases.roster.LastChange()
			s.leases.mu.Unlock()
			if heard.Before(began) {
				heard = began
			}
			s.config.Store.Observe(proxy.LeaseWatch{Stalled: now.Sub(heard) > watchStalls})
			was := gap
			if gap = now.Sub(heard) > watchGap; was && !gap && s.fetcher != nil {
				s.fetcher.changed()
			}
		}
	}
}

// runTicks lets time pass in the store's table, where graces end.
func (s *Sources) runTicks(ctx context.Context) {
	changed, stop := s.config.Store.Subscribe()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case now := <-timer.C:
			s.config.Store.Observe(proxy.Tick{At: now})
		}
		timer.Stop()
		if at, ok := s.config.Store.Table().Wake(); ok {
			timer.Reset(time.Until(at))
		}
	}
}
