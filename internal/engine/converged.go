package engine

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/step"
	"github.com/skewproof/skewproof/internal/traffic"
	"github.com/skewproof/skewproof/internal/workload"
)

var _ step.Converger = (*load)(nil)

// Converged implements [step.Converger].
func (l *load) Converged(ctx context.Context) bool { return l.truth.converged(ctx) }

// converged asks every ready server for its merged discovery, and for the resources that only other
// servers serve. It reports whether all of that is right.
func (t *truth) converged(ctx context.Context) bool {
	live := t.served()
	wanted := map[history.GVR]bool{}
	for _, document := range live {
		for _, r := range document.Resources {
			wanted[r.GVR] = true
		}
	}
	var mu sync.Mutex
	right := len(live) > 0
	wrong := func() {
		mu.Lock()
		defer mu.Unlock()
		right = false
	}
	var all sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(live)) {
		all.Go(func() {
			attempt, cancel := context.WithTimeout(ctx, truthTimeout)
			defer cancel()
			if !answersAll(attempt, t.clients[name], foreign(name, live)) || !listsAll(attempt, t.clients[name], wanted) {
				wrong()
			}
		})
	}
	all.Wait()
	return right && ctx.Err() == nil
}

// foreign are requests for the resources that can be listed and that only other servers serve.
func foreign(server string, live map[string]history.Document) (all []workload.Request) {
	for _, p := range workload.Classify(live) {
		if p.Class != workload.Somewhere || p.Subresource != "" || slices.Contains(p.Servers, server) ||
			!slices.Contains(p.Resource.Verbs, "list") {
			continue
		}
		all = append(all, workload.Request{Verb: "list", GVR: p.Resource.GVR, Query: "limit=1"})
	}
	return all
}

// answersAll reports whether a server answers all requests with 200.
func answersAll(ctx context.Context, server rest.Interface, requests []workload.Request) bool {
	for _, r := range requests {
		status := 0
		if err := server.Get().RequestURI(r.URL().String()).MaxRetries(0).Do(ctx).StatusCode(&status).Error(); err != nil ||
			status != http.StatusOK {
			return false
		}
	}
	return true
}

// listsAll reports whether the merged discovery of a server lists exactly these resources.
func listsAll(ctx context.Context, server rest.Interface, wanted map[history.GVR]bool) bool {
	merged, err := traffic.DiscoverMerged(ctx, server)
	if err != nil {
		return false
	}
	listed := map[history.GVR]bool{}
	for _, r := range merged.Resources {
		listed[r.GVR] = true
	}
	return maps.Equal(listed, wanted)
}
