package step

import (
	"context"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/scenario"
)

// administer does to etcd or to a lease what an administrator does. It keeps the effect for the
// record of the step.
func (e *Executor) administer(ctx context.Context, s *scenario.Step) (err error) {
	of, ok := e.Cluster.(cluster.Administrator)
	if !ok {
		return errNoAdmin // a step of a held cluster, which Prepare has not seen
	}
	switch s.Action {
	case scenario.CompactEtcd:
		e.effect, err = of.CompactEtcd(ctx)
	case scenario.DefragmentEtcd:
		e.effect, err = of.DefragmentEtcd(ctx)
	case scenario.WithdrawDiscovery, scenario.GrantDiscovery:
		e.effect, err = of.GrantDiscovery(ctx, s.Action == scenario.GrantDiscovery)
	default:
		e.effect, err = of.DeleteLease(ctx, s.Server)
	}
	return err
}
