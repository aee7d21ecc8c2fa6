package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
)

// leaseInterval is the interval at which the endpoint lease of a server is read.
const leaseInterval = time.Second

// leases records the endpoint leases of ready servers. Their addresses are those at which peers
// reach the servers, and may differ from the addresses in the servers' flags.
type leases struct {
	cluster  cluster.Advertiser // nil if the cluster cannot read leases
	serving  func(server string) int
	recorder *history.Recorder
	status   func(string, ...any)

	mu   sync.Mutex
	seen map[string]history.Lease // by server; not recorded yet
}

func newLeases(c cluster.Reachable, recorder *history.Recorder, status func(string, ...any)) *leases {
	l := &leases{serving: c.Serving, recorder: recorder, status: status, seen: map[string]history.Lease{}}
	l.cluster, _ = c.(cluster.Advertiser)
	return l
}

// watch reads the leases of these servers until ctx ends, and then records what it read last.
func (l *leases) watch(ctx context.Context, servers []string) {
	if l.cluster == nil {
		return
	}
	var all sync.WaitGroup
	for _, name := range servers {
		all.Go(func() { every(ctx, leaseInterval, func() { l.look(ctx, name) }) })
	}
	all.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.seen)) {
		l.recorder.Lease(l.seen[name])
	}
	clear(l.seen)
}

// look reads one lease. The content counts only if the server is ready all the time.
func (l *leases) look(ctx context.Context, name string) {
	incarnation := l.serving(name)
	attempt, cancel := context.WithTimeout(ctx, truthTimeout)
	defer cancel()
	advertised, err := l.cluster.Advertised(attempt, name)
	same := incarnation != 0 && l.serving(name) == incarnation
	switch {
	case err != nil && ctx.Err() == nil:
		l.status("%s: %v", name, err)
	case err == nil && same:
		l.learn(history.Lease{Server: name, Incarnation: incarnation, Advertised: advertised})
	}
}

// learn takes the content of a lease. When the content changes, or belongs to another process,
// learn records the content before.
func (l *leases) learn(now history.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now.First = l.recorder.Now()
	now.Last = now.First
	was, ok := l.seen[now.Server]
	switch {
	case ok && was.Incarnation == now.Incarnation && was.Advertised == now.Advertised:
		now.First = was.First
	case ok:
		l.recorder.Lease(was)
	}
	l.seen[now.Server] = now
}
