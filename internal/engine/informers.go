package engine

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/informers"
	"github.com/skewproof/skewproof/internal/ownership"
	"github.com/skewproof/skewproof/internal/scenario"
)

// inform starts the informers of a plan, if it has any, for each resource of owners. Each server
// has one informer for each resource, and so has the load balancer of the cluster, if there is one.
// end ends them.
func inform(plan scenario.Plan, c cluster.Reachable, served func() map[string]history.Document, recorder *history.Recorder) (end func(), err error) {
	if !plan.Informers {
		return func() {}, nil
	}
	resources, err := ownership.Choose(served())
	if err != nil {
		return nil, fmt.Errorf("choose what informers ask for: %w", err)
	}
	var about []history.GVR
	for _, r := range resources {
		about = append(about, r.GVR)
	}
	var ways []informers.Way
	for _, server := range plan.Names() {
		url, err := c.URL(server)
		if err != nil {
			return nil, err
		}
		ways = append(ways, informers.Way{Server: server, URL: url})
	}
	if b, ok := c.(cluster.Balancer); ok {
		ways = append(ways, informers.Way{URL: b.BalancerURL()})
	}
	all, err := informers.Start(ways, about, c.Admin(), recorder)
	if err != nil {
		return nil, err
	}
	return all.Close, nil
}
