package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
)

// crowdWatches is the number of watches that the caller of a crowd keeps open. It is more than one
// connection between two servers carries.
const crowdWatches = 320

// Gather implements [step.Crowds]. The caller of the crowd has an identity of its own. It watches
// what only other servers serve at the moment. A released proxy is not asked.
func (l *load) Gather(ctx context.Context, server string) (disperse func(), err error) {
	refused := func(why string) error {
		return &scenario.RefusedStep{Err: fmt.Errorf("no crowd at %s: %s", server, why)}
	}
	if l.subject != scenario.SubjectReference && l.subject != scenario.SubjectNone {
		return nil, refused("a crowd is for the subject " + scenario.SubjectReference)
	}
	if l.cluster.Serving(server) == 0 {
		return nil, refused("it is not ready")
	}
	paths := crossing(l.truth.served(), server)
	if len(paths) == 0 {
		return nil, refused("it serves itself what the other servers serve, so nothing would be passed on")
	}
	address, err := l.cluster.URL(server)
	if err != nil {
		return nil, fmt.Errorf("gather a crowd at %s: %w", server, err)
	}
	caller := rest.CopyConfig(l.cluster.Anonymous())
	caller.BearerToken = l.crowdToken
	client, err := rest.HTTPClientFor(caller)
	if err != nil {
		return nil, fmt.Errorf("gather a crowd at %s: %w", server, err)
	}
	record := history.Crowd{Server: server, Start: l.recorder.Now(), Watches: crowdWatches, Resources: paths}
	end := watchAll(context.WithoutCancel(ctx), client, address, paths) // the executor ends it, also after a cancelled run
	return func() {
		record.End = l.recorder.Now()
		record.Failed, record.Problem = end()
		l.recorder.Crowd(record)
	}, nil
}

// watchAll keeps watches of the paths open until end is called. end says how many of them the
// server never answered, and why the last of these.
func watchAll(ctx context.Context, client *http.Client, address string, paths []string) (end func() (failed int, problem string)) {
	ctx, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	unanswered := make(chan error, crowdWatches)
	for n := range crowdWatches {
		watches.Go(func() {
			if err := keepWatching(ctx, client, address+paths[n%len(paths)]+"?watch=true&timeoutSeconds=3600"); err != nil {
				unanswered <- err
			}
		})
	}
	return func() (failed int, problem string) {
		stop()
		watches.Wait()
		close(unanswered)
		for err := range unanswered {
			failed, problem = failed+1, err.Error()
		}
		return failed, problem
	}
}

// keepWatching keeps a watch open until ctx ends, as an informer does. The error says why the
// server never answered.
func keepWatching(ctx context.Context, client *http.Client, url string) (last error) {
	answered := false
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if answer, err := client.Do(request); err == nil {
			answered = true
			_, _ = io.Copy(io.Discard, answer.Body) // until the watch ends
			_ = answer.Body.Close()
		} else if !errors.Is(err, context.Canceled) {
			last = err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	if answered {
		return nil
	}
	return last
}

// crossing returns the paths of the collections that a client can list, watch and create objects
// in, and that other servers serve, but not this one. They are sorted.
func crossing(served map[string]history.Document, server string) (paths []string) {
	own := map[history.GVR]bool{}
	for _, r := range served[server].Resources {
		own[r.GVR] = true
	}
	for name, doc := range served {
		for _, r := range doc.Resources {
			if name == server || own[r.GVR] || !offers(r, "list", "watch", "create") {
				continue
			}
			path := strings.Join([]string{"/apis", r.Group, r.Version}, "/")
			if r.Group == "" {
				path = "/api/" + r.Version
			}
			if r.Namespaced {
				path += "/namespaces/" + workload.Namespace
			}
			paths = append(paths, path+"/"+r.Resource)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func offers(r history.Resource, verbs ...string) bool {
	for _, verb := range verbs {
		if !slices.Contains(r.Verbs, verb) {
			return false
		}
	}
	return true
}
