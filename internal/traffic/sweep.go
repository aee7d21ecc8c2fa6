package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// SweepOptions bound a sweep. Zero fields take the defaults named at each.
type SweepOptions struct {
	// Servers to sweep; default: all targets.
	Servers []string
	// Verbs to try; default: all that the document lists. Watches take a second each, though side by side.
	Verbs []string
	// QPS over all servers; default: no limit but Concurrency.
	QPS float64
	// Concurrency is the number of requests under way for each server, watches not counted. Default 8.
	Concurrency int
	// Timeout of one request. Default: workload.Timeout.
	Timeout time.Duration
}

// watchConcurrency is larger than that of requests: a watch is idle for most of its second.
const watchConcurrency = 32

// Swept says what a sweep did.
type Swept struct {
	Resources int // lines of the document that were tried, subresources included, on one server
	Requests  int // sent, over all servers
}

// Sweep tries, as the first identity and on every server, each verb of each resource and subresource that the document lists (KEP-4020, G4: what
// discovery lists can be accessed), and records what came of it with history.PurposeSweep. It returns when all has been
// tried, or ctx ends, which is its only error besides an unknown server. Setup must have been done.
func Sweep(ctx context.Context, clients *Clients, doc history.Document, options SweepOptions) (Swept, error) {
	options.Concurrency = cmp.Or(options.Concurrency, 8)
	options.Timeout = cmp.Or(options.Timeout, workload.Timeout)
	if options.Servers == nil {
		for _, t := range clients.targets {
			options.Servers = append(options.Servers, t.Server)
		}
	}
	limiter := rate.NewLimiter(rate.Inf, 1)
	if options.QPS > 0 {
		limiter.SetLimit(rate.Limit(options.QPS))
	}
	plan := workload.Sweep(doc, options.Verbs)
	user := clients.identities[0].User // who may do everything, or the sweep would learn of RBAC only
	type line struct {
		of          history.GVR
		subresource string
	}
	lines := map[line]bool{}
	for i := range plan {
		plan[i].User = user
		lines[line{plan[i].GVR, plan[i].Subresource}] = true
	}
	swept := Swept{Resources: len(lines)}
	for _, server := range options.Servers {
		if clients.get(user, server) == nil {
			return swept, fmt.Errorf("sweep: there is no client for server %q", server)
		}
	}
	servers, ctx := errgroup.WithContext(ctx)
	sent := make([]int, len(options.Servers))
	for i, server := range options.Servers {
		servers.Go(func() (err error) {
			sent[i], err = sweepServer(ctx, clients, server, plan, limiter, options)
			return err
		})
	}
	err := servers.Wait()
	for _, n := range sent {
		swept.Requests += n
	}
	if err != nil {
		return swept, fmt.Errorf("sweep: ended after %d of %d requests: %w", swept.Requests, len(plan)*len(options.Servers), err)
	}
	return swept, nil
}

func sweepServer(ctx context.Context, clients *Clients, server string, plan []workload.Request, limiter *rate.Limiter, o SweepOptions) (int, error) {
	var requests, watches errgroup.Group
	requests.SetLimit(o.Concurrency)
	watches.SetLimit(watchConcurrency)
	sent := 0
	var failure error
	for _, r := range plan {
		if failure = limiter.Wait(ctx); failure != nil {
			break
		}
		sent++
		pool := &requests
		if r.Verb == "watch" {
			pool = &watches
		}
		pool.Go(func() error {
			clients.Send(ctx, server, r, history.PurposeSweep, o.Timeout)
			return nil
		})
	}
	_, _ = requests.Wait(), watches.Wait() // their functions return no errors
	return sent, errors.Join(failure, ctx.Err())
}
