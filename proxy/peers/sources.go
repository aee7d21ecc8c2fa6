package peers

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/proxy/discovery"
)

// Config lists the sources. The policy of the Store's table says how they behave.
type Config struct {
	Store *proxy.Store // the store that the sources feed; required

	// Address is the "host:port" that the local server publishes; see [RosterConfig]. Empty: none.
	Address string

	// Client watches identity leases and, if the policy uses them, StorageVersion objects. Nil: no
	// peers are found.
	Client kubernetes.Interface
	// Etcd has the keys of servers. It is required with Client, except under a policy for which every
	// identity lease is a server. Nil: no addresses are known.
	Etcd Etcd
	// Dynamic watches CustomResourceDefinitions and APIServices. Nil: no extensions are known.
	Dynamic dynamic.Interface
	// Identify returns the verified serving certificate at an address, and Port is the port of all
	// kube-apiservers that write no key. They are used to find such servers; see the package's
	// comment. Nil: none are found.
	Identify func(ctx context.Context, address string) (*x509.Certificate, error)
	Port     int

	// PeerTransport sends requests to peers. It must verify their certificates and present a
	// front-proxy client certificate. URLs have the scheme https and the peer's address as host.
	// The sources add the identity and hop headers. Required except under StorageVersions.
	PeerTransport http.RoundTripper
	// LocalTransport reaches the local server in the same way, whatever the host of a URL. Nil: the
	// caller must itself observe [proxy.LocalFetched].
	LocalTransport http.RoundTripper
	// Identity names the headers for the sources' identity, system:apiserver.
	Identity proxy.IdentityHeaders

	// Random returns a number in [0, 1) for jitter. It is not called concurrently. Nil: a generator
	// with a random seed.
	Random func() float64
	// Metrics counts failures. Nil: they are not counted.
	Metrics *Metrics
	// FetchAnswered gets the status code of each answer of a peer to a fetch, such as
	// [proxy.Metrics.Fetched]. It is called concurrently. Nil: none.
	FetchAnswered func(code int)
	Logger        *slog.Logger // nil: nothing is logged
}

// Sources are all sources of one server. Make them with [New]. Methods may be called concurrently.
type Sources struct {
	config   Config
	policy   proxy.Policy
	log      *slog.Logger
	leases   *leaseWatch
	finder   *finder  // nil if no servers without a key are found
	fetcher  *fetcher // nil under a policy that fetches nothing
	local    *local   // nil if the local server is not asked
	watchers []watcher
}

// watcher runs a source. It calls synced when it has delivered everything that existed at its
// start.
type watcher func(ctx context.Context, synced func()) error

// New returns the sources of one server. It dials nothing. The error says what is missing.
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
			Self: table.Self(), Address: config.Address,
			StaleAfter: s.policy.Knowledge.StaleAfter, Leaving: s.policy.Knowledge.Leaving,
		}),
	}
	if s.fetcher != nil {
		s.fetcher.found = s.leases.found
	}
	if config.Etcd != nil && config.Identify != nil && s.policy.Knowledge.StaleAfter > 0 {
		s.finder = &finder{leases: s.leases, identify: config.Identify, port: config.Port, log: s.log}
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
			Transport: c.PeerTransport, Identity: c.Identity, Privileged: fetching.Privileged, Hop: true,
			Accept: fetching.Accept, EmptyIsDocument: s.policy.Quirks.EmptyIsDocument, Timeout: fetching.Timeout, Together: fetching.Together, Answered: c.FetchAnswered,
		}, random, c.Metrics, s.log)
	}
	if c.Client != nil && c.Etcd == nil && s.policy.Knowledge.StaleAfter > 0 {
		return fmt.Errorf("make sources: Config.Etcd is needed under the policy %s, which believes no lease without a key", s.policy.Name)
	}
	if c.LocalTransport == nil || fetching.LocalInterval <= 0 {
		return nil
	}
	s.local = &local{
		store: c.Store, interval: fetching.LocalInterval, demand: make(chan struct{}, 1), log: s.log,
		client: &discoveryClient{
			Transport: c.LocalTransport, Identity: c.Identity, Accept: localAccept,
			Timeout: cmp.Or(fetching.Timeout, localTimeout), Together: true,
		},
	}
	return nil
}

// Document fetches a JSON document of at most [discovery.MaxOpenAPI] bytes from a peer, with the
// local server's identity. It is [proxy.Config].Document.
func (s *Sources) Document(ctx context.Context, p proxy.PeerView, path string) (body []byte, etag string, err error) {
	if s.fetcher == nil {
		return nil, "", fmt.Errorf("the policy %s fetches nothing from peers", s.policy.Name)
	}
	client := *s.fetcher.client
	client.Timeout = cmp.Or(client.Timeout, localTimeout)
	ctx, cancel := client.bounded(ctx)
	defer cancel()
	r, err := client.get(ctx, url.URL{Scheme: "https", Host: p.Address}, path, "application/json", "", discovery.MaxOpenAPI)
	if err != nil {
		s.config.Metrics.failed(failedFetch)
		return nil, "", errors.New(trouble(err))
	}
	return r.body, r.etag, nil
}

func (s *Sources) makeWatchers() error {
	c := s.config
	if c.Client != nil {
		failed := s.watchFailed("leases", failedLeaseList)
		s.watchers = append(s.watchers, func(ctx context.Context, synced func()) error {
			return s.leases.run(ctx, c.Client, c.Etcd, failed, synced)
		})
	}
	if c.Client != nil && s.policy.Knowledge.StorageVersions {
		s.watch("StorageVersions", watchStorageVersions(c.Store, c.Client, s.log))
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
		s.watch("extensions", w)
	}
	if s.local != nil {
		s.watchers = append(s.watchers, func(ctx context.Context, synced func()) error {
			s.local.run(ctx, synced)
			return nil
		})
	}
	return nil
}

func (s *Sources) watch(what string, w *setWatch) {
	s.watchers = append(s.watchers, func(ctx context.Context, synced func()) error {
		return w.run(ctx, s.watchFailed(what, ""), synced)
	})
}

// watchFailed logs and counts a failure of a watch, which client-go retries.
func (s *Sources) watchFailed(what, kind string) func(error) {
	return func(err error) {
		s.log.Warn("watch failed; trying again", "of", what, "err", err)
		if kind != "" {
			s.config.Metrics.failed(kind)
		}
	}
}

// tell passes events to the store first, because a round of fetches takes the peers from the store.
func (s *Sources) tell(events []proxy.Event) {
	s.config.Store.Observe(events...)
	if s.fetcher != nil {
		s.fetcher.learnt(events)
	}
}

// Failed says that requests to a peer have begun to fail, so that the peer is asked at once what it
// serves. It does nothing if the peer is unknown. It is safe for concurrent use.
func (s *Sources) Failed(id proxy.ServerID) {
	if s.fetcher != nil {
		s.fetcher.learnt([]proxy.Event{proxy.PeerFailed{ID: id}})
	}
}

// Run runs all sources until ctx ends, and returns when all their goroutines have ended. It may be
// called once. It observes [proxy.Synced] when everything that existed at the start is known.
//
// This is the case when every watch has delivered what existed and the local server has reported
// what it serves. Under a policy with WaitForPeers, every peer that was live then must also have
// been asked once, whether it answered or not.
//
// Run returns the error of a source that cannot start. Later failures are logged and retried.
func (s *Sources) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	var delivered sync.WaitGroup
	for _, w := range s.watchers {
		delivered.Add(1)
		var once sync.Once
		done := func() { once.Do(delivered.Done) }
		group.Go(func() error {
			defer done() // a source that has ended delivers nothing more
			return w(ctx, done)
		})
	}
	if s.fetcher != nil {
		group.Go(func() error { s.fetcher.run(ctx); return nil })
	}
	group.Go(func() error { s.runTicks(ctx); return nil })
	if s.config.Client != nil {
		group.Go(func() error { s.superviseLeases(ctx); return nil })
	}
	if s.finder != nil {
		group.Go(func() error {
			return s.finder.run(ctx, s.config.Etcd.Masters(), s.watchFailed("addresses of kube-apiservers", ""))
		})
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

// RefreshLocal makes the sources ask the local server at once what it serves. It does not wait for
// the answer.
func (s *Sources) RefreshLocal() {
	if s.local != nil {
		notify(s.local.demand)
	}
}

// Every kube-apiserver renews its identity lease every 10 s, and every publisher its key every 5 s.
// If the watches see no change for longer, they are cut off from etcd, or they hang.
const (
	watchStalls = 20 * time.Second // after which the store is told
	watchGap    = 12 * time.Second // after which every peer is asked again
)

// superviseLeases tells the store when the watches of leases and keys stall, and when they work
// again. After a gap, every peer is asked again, because its document may list a custom resource
// that was deleted in the gap.
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
			s.leases.logWithoutKey(now)
			was := gap
			if gap = now.Sub(heard) > watchGap; was && !gap && s.fetcher != nil {
				s.fetcher.changed()
			}
		}
	}
}

// alarm returns a channel that receives at a time. The time may have come.
//
// The timer waits a nanosecond at least. One that is due before anybody waits for it is fired by
// its reader, and two such readers in one bubble of testing/synctest use one state of the race
// detector at the same time, which ends the test process (Go 1.26).
func alarm(at time.Time) <-chan time.Time {
	return time.After(max(time.Until(at), time.Nanosecond))
}

// runTicks observes a [proxy.Tick] whenever the table is due for one.
func (s *Sources) runTicks(ctx context.Context) {
	changed, stop := s.config.Store.Subscribe()
	defer stop()
	s.config.Store.Observe(proxy.Tick{At: time.Now()})
	for {
		var due <-chan time.Time
		if at, ok := s.config.Store.Table().Wake(); ok {
			due = alarm(at)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case now := <-due:
			s.config.Store.Observe(proxy.Tick{At: now})
		}
	}
}
