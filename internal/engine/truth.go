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

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
)

const (
	// truthInterval is how often a server is asked what it serves, so that a change that no step made (a CRD) is seen. Between
	// the last look that confirmed a document and the first that found another, nothing is known.
	truthInterval = time.Second
	truthTimeout  = 5 * time.Second
	// late is how long an answer takes that is written down as such: a hundred times as long as on a machine that keeps up.
	late = 2 * time.Second
	// pulseInterval is how often the harness finds out whether it is let run itself.
	pulseInterval = 250 * time.Millisecond
)

// truth keeps what every ready server serves by itself, as told by its own profile=nopeer discovery, asked around all links
// and faults. It writes each change down and tells changed. Servers are looked at independently of each other: one that is
// silent must not age what is known of the others.
type truth struct {
	serving  func(server string) int
	queued   func(server string) time.Duration
	recorder *history.Recorder
	status   func(string, ...any)
	changed  func(map[string]history.Document)
	clients  map[string]rest.Interface // to the kube-apiservers themselves
	doors    map[string]rest.Interface // to what clients meet

	mu    sync.Mutex
	known map[string]known
}

// known is what a server was last seen to serve.
type known struct {
	incarnation int
	document    history.Document
	confirmed   history.Time // when the last look that found the document began
}

func newTruth(cluster Cluster, servers []string, recorder *history.Recorder, status func(string, ...any)) (*truth, error) {
	t := &truth{
		serving: cluster.Serving, queued: queued(cluster), recorder: recorder, status: status,
		clients: map[string]rest.Interface{}, doors: map[string]rest.Interface{}, known: map[string]known{},
	}
	for _, name := range servers {
		var err error
		if t.clients[name], err = asking(cluster.Direct, name); err != nil {
			return nil, err
		}
		if t.doors[name], err = asking(cluster.FrontDoor, name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Queuer is a [Cluster] that knows for how long threads of a server's processes have been able to run while no processor did, since they were
// started; of several threads the sum. It may be called concurrently, and gives 0 for a server that does not run.
type Queuer interface {
	Queued(server string) time.Duration
}

// queued asks the cluster that, if it knows.
func queued(c Cluster) func(string) time.Duration {
	if q, ok := c.(Queuer); ok {
		return q.Queued
	}
	return func(string) time.Duration { return 0 }
}

// asking is a client that asks one server for discovery, as fast as it likes.
func asking(way func(string) (*rest.Config, error), server string) (rest.Interface, error) {
	config, err := way(server)
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

// observe looks at the given servers now, side by side, and returns when it has looked at all of them.
func (t *truth) observe(ctx context.Context, servers ...string) {
	var all sync.WaitGroup
	for _, name := range servers {
		all.Go(func() { t.look(ctx, name) })
	}
	all.Wait()
}

// look asks one server. One that does not answer (paused, or ended meanwhile) keeps what is known of its present incarnation; the
// history says when that was last confirmed.
func (t *truth) look(ctx context.Context, name string) {
	incarnation := t.serving(name)
	if incarnation == 0 {
		t.forget(name)
		return
	}
	attempt, cancel := context.WithTimeout(ctx, truthTimeout)
	defer cancel()
	began, waited := t.recorder.Now(), t.queued(name)
	document, err := traffic.Discover(attempt, t.clients[name])
	same := t.serving(name) == incarnation
	if end := t.recorder.Now(); same && ctx.Err() == nil && end-began >= late {
		t.recorder.Late(history.Late{Server: name, Start: began, End: end, Queued: max(0, t.queued(name)-waited)})
	}
	switch {
	case !same: // an answer of two incarnations, or of one that is going
	case err != nil && ctx.Err() == nil:
		t.status("%s: ask what it serves: %v", name, err)
	case err == nil:
		t.learn(name, known{incarnation, document, began})
	}
}

// learn takes what a look has found for what the server serves now, unless more is known already: looks at one server can overlap, when a step asks while
// the watch does, and the one that began first may be answered last.
func (t *truth) learn(name string, now known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.known[name]
	if t.serving(name) != now.incarnation || was.incarnation == now.incarnation && now.confirmed < was.confirmed {
		return
	}
	t.known[name] = now
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

// forget drops what is known of a server that serves no more, so that the load follows.
func (t *truth) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, ok := t.known[name]; ok && t.serving(name) != k.incarnation {
		delete(t.known, name)
		t.tell()
	}
}

func (t *truth) tell() {
	live := map[string]history.Document{}
	for name, k := range t.known {
		live[name] = k.document
	}
	if len(live) > 0 {
		t.changed(live)
	}
}

// watch looks at every server again and again until ctx ends.
func (t *truth) watch(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(pulseInterval)
		defer tick.Stop()
		last := beat{t.recorder.Now(), time.Now().Round(0)}
		for {
			select {
			case <-tick.C:
				last = t.pulse(last, time.Now())
			case <-ctx.Done():
				return
			}
		}
	})
	for name := range t.clients {
		all.Go(func() {
			tick := time.NewTicker(truthInterval)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					t.look(ctx, name)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
}

// beat is one moment by both clocks: that of the run, and that of the wall, by which servers tell whose leases have expired.
type beat struct {
	run  history.Time
	wall time.Time // without a monotonic reading
}

// pulse writes down that the harness itself was not let run since the last time, if that is long ago: then it asked nobody anything, and whether any
// server was let run nobody knows. It does the same if the machine's clock has leapt meanwhile, because it was set or the machine slept, which the clock of the
// run does not count. It returns the time.
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
			t.recorder.Late(history.Late{Server: name, Start: last.run, End: now.run, Queued: now.run - last.run})
		}
	}
	return now
}

// listed is everything there is to sweep: what any server serves, and what any server's merged discovery tells clients that there
// is. A server that does not answer adds nothing but what is known of it.
func (t *truth) listed(ctx context.Context) history.Document {
	t.mu.Lock()
	known := maps.Clone(t.known)
	t.mu.Unlock()
	var all []history.Document
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[name].document)
		attempt, cancel := context.WithTimeout(ctx, truthTimeout)
		merged, err := traffic.DiscoverMerged(attempt, t.doors[name])
		cancel()
		if err != nil {
			t.status("%s: ask for its merged discovery: %v", name, err)
			continue
		}
		all = append(all, merged)
	}
	return workload.Union(all...)
}
