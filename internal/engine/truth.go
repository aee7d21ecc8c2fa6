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
)

const (
	// truthInterval is how often every server is asked what it serves, so that a change that no step made (a CRD) is seen.
	truthInterval = 2 * time.Second
	truthTimeout  = 5 * time.Second
)

// truth keeps what every ready server serves by itself, as told by its own profile=nopeer discovery, asked around all links
// and faults. It writes each change down and tells changed.
type truth struct {
	serving  func(server string) int
	recorder *history.Recorder
	status   func(string, ...any)
	changed  func(map[string]history.Document)
	clients  map[string]rest.Interface

	mu    sync.Mutex // one look at a time
	known map[string]known
}

type known struct {
	incarnation int
	document    history.Document
}

func newTruth(cluster Cluster, servers []string, recorder *history.Recorder, status func(string, ...any)) (*truth, error) {
	t := &truth{serving: cluster.Serving, recorder: recorder, status: status, clients: map[string]rest.Interface{}, known: map[string]known{}}
	for _, name := range servers {
		config, err := cluster.Direct(name)
		if err != nil {
			return nil, err
		}
		config.QPS = -1
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("prepare the client that asks %q what it serves: %w", name, err)
		}
		t.clients[name] = client.RESTClient()
	}
	return t, nil
}

// observe asks every ready server at once. A server that does not answer (paused, or ended meanwhile) keeps what is known of
// its present incarnation; invariants see how old that is.
func (t *truth) observe(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all sync.WaitGroup
	var results sync.Mutex
	fresh := map[string]known{}
	for name, client := range t.clients {
		before := t.serving(name)
		if before == 0 {
			continue
		}
		all.Go(func() {
			attempt, cancel := context.WithTimeout(ctx, truthTimeout)
			defer cancel()
			document, err := traffic.Discover(attempt, client)
			if err != nil {
				if ctx.Err() == nil && t.serving(name) == before {
					t.status("%s: ask what it serves: %v", name, err)
				}
				return
			}
			if t.serving(name) != before {
				return // an answer of two incarnations
			}
			results.Lock()
			defer results.Unlock()
			fresh[name] = known{before, document}
		})
	}
	all.Wait()
	t.update(fresh)
}

func (t *truth) update(fresh map[string]known) {
	different := false
	for name, now := range fresh {
		if was := t.known[name]; was.incarnation != now.incarnation || was.document.Hash != now.document.Hash {
			t.recorder.Served(history.Served{Server: name, Incarnation: now.incarnation, At: t.recorder.Now()}, now.document)
			t.known[name] = now
			different = true
		}
	}
	live := map[string]history.Document{}
	for name, k := range t.known {
		if t.serving(name) != k.incarnation {
			delete(t.known, name)
			different = true
			continue
		}
		live[name] = k.document
	}
	if different && len(live) > 0 {
		t.changed(live)
	}
}

// watch observes until ctx ends.
func (t *truth) watch(ctx context.Context) {
	tick := time.NewTicker(truthInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.observe(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// listed is everything there is to sweep: what any server serves, and what any server's merged discovery tells clients that there
// is.
func (t *truth) listed(ctx context.Context) (history.Document, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []history.Document
	for _, name := range slices.Sorted(maps.Keys(t.known)) {
		merged, err := traffic.DiscoverMerged(ctx, t.clients[name])
		if err != nil {
			return history.Document{}, fmt.Errorf("ask %q for its merged discovery: %w", name, err)
		}
		all = append(all, t.known[name].document, merged)
	}
	return traffic.Union(all...), nil
}
