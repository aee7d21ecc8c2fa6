package traffic

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/workload"
)

// SweepOptions are the limits of a sweep.
type SweepOptions struct {
	// Verbs are the verbs to try; default: all that the document lists. Each watch takes a second.
	Verbs []string
	// QPS is the rate over all servers; default: no limit.
	QPS float64
}

// This is the number of requests in progress of a sweep, for each server. A watch is mostly idle.
const (
	sweepConcurrency = 8
	watchConcurrency = 32
)

// Swept is the extent of a sweep.
type Swept struct {
	Resources int // resources and subresources of the document that were tried, on one server
	Requests  int // sent, over all servers
}

// Sweep tries each verb of each resource and subresource in the document, as the first identity and
// on every server (KEP-4020, G4: what discovery lists can be accessed). It records the results with
// history.PurposeSweep. It returns when it has tried everything, or when ctx ends, which is its
// only error. Setup must have been called before.
func Sweep(ctx context.Context, clients *Clients, doc history.Document, options SweepOptions) (Swept, error) {
	limiter := rate.NewLimiter(rate.Inf, 1)
	if options.QPS > 0 {
		limiter.SetLimit(rate.Limit(options.QPS))
	}
	type line struct {
		of          history.GVR
		subresource string
	}
	plan, lines := workload.Sweep(doc, options.Verbs), map[line]bool{}
	for i := range plan {
		plan[i].User = clients.identities[0].User // this user may do everything, otherwise the sweep would only test RBAC
		lines[line{plan[i].GVR, plan[i].Subresource}] = true
	}
	var sent atomic.Int64
	servers, ctx := errgroup.WithContext(ctx)
	for _, target := range clients.targets {
		servers.Go(func() error {
			var requests, watches errgroup.Group
			requests.SetLimit(sweepConcurrency)
			watches.SetLimit(watchConcurrency)
			var failure error
			for _, r := range plan {
				if failure = limiter.Wait(ctx); failure != nil {
					break
				}
				sent.Add(1)
				pool := &requests
				if r.Verb == "watch" {
					pool = &watches
				}
				pool.Go(func() error {
					clients.Send(ctx, target.Server, r, history.PurposeSweep, workload.Timeout)
					return nil
				})
			}
			_, _ = requests.Wait(), watches.Wait() // their functions never return an error
			return errors.Join(failure, ctx.Err())
		})
	}
	err := servers.Wait()
	swept := Swept{Resources: len(lines), Requests: int(sent.Load())}
	if err != nil {
		err = fmt.Errorf("sweep: ended after %d of %d requests: %w", swept.Requests, len(plan)*len(clients.targets), err)
	}
	return swept, err
}
