package peers

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/skewproof/skewproof/proxy"
)

const unresolved = "its address is not known"

// fetcher runs a Schedule in real time: it asks peers what they serve, and stores the answers.
type fetcher struct {
	store   *proxy.Store
	policy  proxy.Policy
	client  *discoveryClient
	metrics *Metrics
	log     *slog.Logger
	// found is called with the version that a peer reports. refused is true if the peer refused or
	// reset a connection.
	found func(id proxy.ServerID, version string, refused bool)

	wake     chan struct{} // the schedule may have changed
	progress chan struct{} // a peer was asked

	mu       sync.Mutex
	schedule *Schedule
	last     map[proxy.ServerID]lastAnswer
	asked    map[proxy.ServerID]bool // the peers that were asked at least once, whether they answered or not
}

// lastAnswer is the last answer of one process of a peer.
type lastAnswer struct {
	address, incarnation string
	*answer
}

func newFetcher(store *proxy.Store, client *discoveryClient, random func() float64, metrics *Metrics, log *slog.Logger) *fetcher {
	policy := store.Table().Policy()
	return &fetcher{
		store: store, policy: policy, client: client, metrics: metrics, log: log, found: func(proxy.ServerID, string, bool) {},
		wake: make(chan struct{}, 1), progress: make(chan struct{}, 1),
		schedule: NewSchedule(policy, random),
		last:     map[proxy.ServerID]lastAnswer{}, asked: map[proxy.ServerID]bool{},
	}
}

// learnt passes events about leases, addresses and extensions to the schedule.
func (f *fetcher) learnt(events []proxy.Event) {
	now := time.Now()
	f.mu.Lock()
	for _, e := range events {
		f.schedule.Learn(e, now)
		if gone, ok := e.(proxy.PeerGone); ok {
			delete(f.last, gone.ID)
			delete(f.asked, gone.ID)
		}
	}
	f.mu.Unlock()
	notify(f.wake)
	notify(f.progress)
}

// changed tells the schedule that the documents of peers may have changed.
func (f *fetcher) changed() {
	f.mu.Lock()
	f.schedule.Changed(time.Now())
	f.mu.Unlock()
	notify(f.wake)
}

// notify puts a token into a channel of capacity one, unless one is there.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *fetcher) run(ctx context.Context) {
	var rounds sync.WaitGroup
	defer rounds.Wait()
	for ctx.Err() == nil {
		f.mu.Lock()
		due := f.schedule.Due(time.Now())
		at, ok := f.schedule.Wake()
		f.mu.Unlock()
		for _, r := range due {
			rounds.Go(func() {
				failed := f.round(ctx, r)
				f.mu.Lock()
				f.schedule.Finished(r, failed, time.Now())
				f.mu.Unlock()
				notify(f.wake)
			})
		}
		var again <-chan time.Time
		if ok {
			again = alarm(at)
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-f.wake:
		}
	}
}

// round asks the peers of a round, and reports whether the round must be repeated.
func (f *fetcher) round(ctx context.Context, r Round) (failed bool) {
	peers := slices.DeleteFunc(f.store.Table().Peers(), func(p proxy.PeerView) bool {
		return !p.Live || !r.All && p.ID != r.Key
	})
	began := time.Now()
	results := make([]proxy.FetchResult, len(peers))
	ask := func(i int) {
		at := time.Now() // a document is as old as the request for it
		results[i] = f.ask(ctx, peers[i])
		if f.policy.Knowledge.KeepLastGood && ctx.Err() == nil {
			f.store.Observe(proxy.Fetched{Results: results[i : i+1 : i+1], At: at})
			f.note(peers[i].ID)
		}
	}
	var together sync.WaitGroup
	for i := range peers {
		if f.policy.Fetching.Together {
			together.Go(func() { ask(i) })
		} else {
			ask(i)
		}
	}
	together.Wait()
	if ctx.Err() != nil {
		return true // an interrupted round says nothing about the peers
	}
	if !f.policy.Knowledge.KeepLastGood {
		// Upstream skips peers without an address, so their fetch cannot crash it
		// (CrashOnFailedFetch).
		fetched := slices.DeleteFunc(slices.Clone(results), func(r proxy.FetchResult) bool {
			return r.Roots[proxy.RootCore].Failed == unresolved
		})
		f.store.Observe(proxy.Fetched{Results: fetched, At: began})
		for _, p := range peers {
			f.note(p.ID)
		}
	}
	return slices.ContainsFunc(results, func(r proxy.FetchResult) bool { return !Succeeded(f.policy.Quirks, r) })
}

// ask asks one peer. If the peer's address is not known, the fetch of both documents fails as
// unresolved.
func (f *fetcher) ask(ctx context.Context, p proxy.PeerView) proxy.FetchResult {
	result := proxy.FetchResult{ID: p.ID, Incarnation: p.Incarnation}
	if p.Address == "" {
		f.metrics.failed(failedResolution)
		for root := range result.Roots {
			result.Roots[root].Failed = unresolved
		}
		return result
	}
	f.mu.Lock()
	before := f.last[p.ID]
	f.mu.Unlock()
	if before.address != p.Address || before.incarnation != p.Incarnation || !f.policy.Knowledge.KeepLastGood {
		before = lastAnswer{} // it was the answer of another process
	}
	answer := f.client.ask(ctx, url.URL{Scheme: "https", Host: p.Address}, before.answer)
	result.Version, result.Roots = answer.Version, answer.Roots
	if ctx.Err() != nil {
		return result
	}
	f.report(p, before.answer, answer)
	f.found(p.ID, answer.Version, answer.Refused)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.schedule.known.has(p.ID) {
		f.last[p.ID] = lastAnswer{p.Address, p.Incarnation, answer}
	}
	return result
}

// report counts failures and logs new ones.
func (f *fetcher) report(p proxy.PeerView, before, after *answer) {
	for root, r := range after.Roots {
		path := proxy.Root(root).Path()
		was := ""
		if before != nil {
			was = before.Roots[root].Failed
		}
		if r.Failed != "" {
			f.metrics.failed(failedFetch)
		}
		switch {
		case r.Failed != "" && r.Failed != was:
			f.log.Warn("discovery of a peer could not be fetched", "peer", p.ID, "path", path, "address", p.Address, "why", r.Failed)
		case r.Failed == "" && was != "":
			f.log.Info("discovery of a peer was fetched again", "peer", p.ID, "path", path)
		}
	}
}

// note records that a peer was asked.
func (f *fetcher) note(id proxy.ServerID) {
	f.mu.Lock()
	if f.schedule.known.has(id) {
		f.asked[id] = true
	}
	f.mu.Unlock()
	notify(f.progress)
}

func (f *fetcher) waitUntilAllAsked(ctx context.Context) {
	for !f.allAsked() {
		select {
		case <-ctx.Done():
			return
		case <-f.progress:
		}
	}
}

func (f *fetcher) allAsked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.schedule.known, func(e entry[struct{}]) bool { return !f.asked[e.id] })
}
