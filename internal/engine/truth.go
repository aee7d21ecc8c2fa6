package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
)

const (
	// truthInterval is the interval at which a server is asked what it serves. This finds changes
	// that no step made (a CRD). Between the last answer with one document and the first with
	// another, nothing is known.
	truthInterval = time.Second
	truthTimeout  = 5 * time.Second
	// late is the duration of a slow probe: a hundred times as long as usual.
	late = 2 * time.Second
	// pulseInterval is the interval at which the harness checks whether it gets to run itself.
	pulseInterval = 250 * time.Millisecond
)

// truth knows what every ready server itself serves. It requests the profile=nopeer discovery of
// each server, past all links and faults. It records each change and calls changed. It asks each
// server independently, because a server that does not answer must not delay the others.
//
// It also asks servers that were told to stop. Such a server serves until the last request that it
// answered as before.
type truth struct {
	serving  func(server string) int
	draining func(server string) *history.Lifecycle
	queued   func(server string) time.Duration
	recorder *history.Recorder
	status   func(string, ...any)
	changed  func(map[string]history.Document)
	clients  map[string]rest.Interface

	mu    sync.Mutex
	known map[string]known
	// drained are the servers that were told to stop and have answered since, with the last time.
	drained map[string]history.Lifecycle
}

// known is the last known document of a server.
type known struct {
	incarnation int
	document    history.Document
	confirmed   history.Time // the start of the last request that found the document
}

func newTruth(cluster cluster.Reachable, servers []string, recorder *history.Recorder, status func(string, ...any)) (*truth, error) {
	t := &truth{
		serving: cluster.Serving, draining: draining(cluster), queued: queued(cluster), recorder: recorder, status: status,
		clients: map[string]rest.Interface{}, known: map[string]known{}, drained: map[string]history.Lifecycle{},
	}
	for _, name := range servers {
		var err error
		if t.clients[name], err = asking(cluster, name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// queued returns how long a server's threads have waited for a CPU, if the cluster knows that.
func queued(c cluster.Reachable) func(string) time.Duration {
	if q, ok := c.(cluster.Queuer); ok {
		return q.Queued
	}
	return func(string) time.Duration { return 0 }
}

// draining returns the process of a server that is stopping, if the cluster knows that.
func draining(c cluster.Reachable) func(string) *history.Lifecycle {
	if d, ok := c.(cluster.Drainer); ok {
		return d.Draining
	}
	return func(string) *history.Lifecycle { return nil }
}

// asking is a client that asks one server for discovery, without a rate limit.
func asking(cluster cluster.Reachable, server string) (rest.Interface, error) {
	config, err := cluster.Direct(server)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the client that asks %q what it serves: %w", server, err)
	}
	return client.RESTClient(), nil
}

// observe asks the servers now, in parallel, and returns when all have been asked.
func (t *truth) observe(ctx context.Context, servers ...string) {
	var all sync.WaitGroup
	for _, name := range servers {
		all.Go(func() { t.look(ctx, name) })
	}
	all.Wait()
}

// look asks one server. If a server does not answer (it is paused, or ended meanwhile), truth keeps
// the known document of its present incarnation. The history has the time of the last confirmation.
func (t *truth) look(ctx context.Context, name string) {
	incarnation := t.serving(name)
	if incarnation == 0 {
		t.lookAtDraining(ctx, name)
		return
	}
	attempt, cancel := context.WithTimeout(ctx, truthTimeout)
	defer cancel()
	began, waited := t.recorder.Now(), t.queued(name)
	document, err := traffic.Discover(attempt, t.clients[name])
	same := t.serving(name) == incarnation
	if end := t.recorder.Now(); same && ctx.Err() == nil && end-began >= late {
		t.recorder.SlowProbe(history.SlowProbe{Server: name, Start: began, End: end, Queued: max(0, t.queued(name)-waited)})
	}
	switch {
	case !same: // the answer comes from two incarnations, or from one that is ending
	case err != nil && ctx.Err() == nil:
		t.status("%s: ask what it serves: %v", name, err)
	case err == nil:
		t.learn(name, known{incarnation, document, began})
	}
}

// lookAtDraining asks a server that is not ready but was told to stop. If it does not answer as
// before, it counts as gone.
func (t *truth) lookAtDraining(ctx context.Context, name string) {
	t.mu.Lock()
	last := t.known[name]
	t.mu.Unlock()
	stopping := t.draining(name)
	if stopping == nil || stopping.Incarnation != last.incarnation {
		t.forget(name)
		return
	}
	attempt, cancel := context.WithTimeout(ctx, truthTimeout)
	defer cancel()
	now := *stopping
	now.State, now.At = history.StateDrained, t.recorder.Now()
	document, err := traffic.Discover(attempt, t.clients[name])
	switch {
	case ctx.Err() != nil:
	case err != nil || document.Hash != last.document.Hash:
		t.forget(name)
	default:
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.known[name].incarnation == now.Incarnation && t.drained[name].At < now.At {
			t.drained[name] = now
		}
	}
}

// learn takes an answer, unless a later request has already finished: a request of a step and one
// of watch can overlap.
func (t *truth) learn(name string, now known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.known[name]
	if t.serving(name) != now.incarnation || was.incarnation == now.incarnation && now.confirmed < was.confirmed {
		return
	}
	t.known[name] = now
	if was.incarnation != now.incarnation {
		t.gone(name)
	}
	if was.incarnation == now.incarnation && was.document.Hash == now.document.Hash {
		return
	}
	served := history.Served{Server: name, Incarnation: now.incarnation, At: t.recorder.Now()}
	if was.incarnation == now.incarnation {
		served.Confirmed = was.confirmed
	}
	t.recorder.Served(served, now.document)
	t.tell()
}

// forget drops the document of a server that no longer serves, so that the load follows.
func (t *truth) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, ok := t.known[name]; ok && t.serving(name) != k.incarnation {
		delete(t.known, name)
		t.gone(name)
		t.tell()
	}
}

// gone records until when a process that has ended served while it was draining, if it did. The
// caller holds the lock.
func (t *truth) gone(name string) {
	if last, ok := t.drained[name]; ok {
		delete(t.drained, name)
		t.recorder.Lifecycle(last)
	}
}

func (t *truth) tell() {
	if live := t.documents(); len(live) > 0 {
		t.changed(live)
	}
}

// documents returns the known documents, by server. The caller holds the lock.
func (t *truth) documents() map[string]history.Document {
	live := map[string]history.Document{}
	for name, k := range t.known {
		live[name] = k.document
	}
	return live
}

// served returns what each server itself serves, as far as it is known.
func (t *truth) served() map[string]history.Document {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.documents()
}

// watch asks every server repeatedly until ctx ends.
func (t *truth) watch(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() {
		last := beat{t.recorder.Now(), time.Now().Round(0)}
		every(ctx, pulseInterval, func() { last = t.pulse(last, time.Now()) })
	})
	for name := range t.clients {
		all.Go(func() { every(ctx, truthInterval, func() { t.look(ctx, name) }) })
	}
	all.Wait()
}

// every calls do at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// beat is one instant on two clocks: that of the run and that of the machine. Leases expire by the
// clock of the machine.
type beat struct {
	run  history.Time
	wall time.Time // without a monotonic reading
}

// pulse records slow probes of all servers if the harness itself did not run for long. It does the
// same if the clock of the machine jumped, because the clock of the run does not show such a jump.
// It returns the time.
func (t *truth) pulse(last beat, wall time.Time) beat {
	now := beat{t.recorder.Now(), wall.Round(0)}
	leap := now.wall.Sub(last.wall) - (now.run - last.run)
	if leap.Abs() >= late {
		t.status("the machine's clock has leapt by %s: it was set, or the machine slept", leap.Round(time.Millisecond))
	} else if now.run-last.run < late {
		return now
	}
	for _, name := range slices.Sorted(maps.Keys(t.clients)) {
		if t.serving(name) != 0 {
			t.recorder.SlowProbe(history.SlowProbe{Server: name, Start: last.run, End: now.run, Queued: now.run - last.run})
		}
	}
	return now
}

// listed returns everything to sweep: what servers serve, and what their merged discovery lists. If
// a server does not answer, listed includes only what is already known about it.
func (t *truth) listed(ctx context.Context) history.Document {
	t.mu.Lock()
	known := maps.Clone(t.known)
	t.mu.Unlock()
	var all []history.Document
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[name].document)
		attempt, cancel := context.WithTimeout(ctx, truthTimeout)
		merged, err := traffic.DiscoverMerged(attempt, t.clients[name])
		cancel()
		if err != nil {
			t.status("%s: ask for its merged discovery: %v", name, err)
			continue
		}
		all = append(all, merged)
	}
	return workload.Union(all...)
}
