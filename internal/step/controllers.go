package step

import (
	"context"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/scenario"
)

// collectEvery is the interval at which the executor checks whether controllers are done.
const collectEvery = time.Second

// control carries out steps about controllers and the objects that they act on.
func (e *Executor) control(ctx context.Context, s *scenario.Step) error {
	controllers := e.Cluster.(cluster.Controllers) // see Prepare
	switch s.Action {
	case scenario.StartControllers:
		return controllers.StartControllers(ctx, s.Version, s.Server)
	case scenario.StopControllers:
		return controllers.StopControllers(ctx)
	case scenario.CreateObjects:
		return e.Objects.Create(ctx, *s.Objects)
	case scenario.CreateQuota:
		return e.Objects.CreateQuota(ctx, *s.Objects)
	case scenario.DeleteOwners:
		return e.Objects.DeleteOwners(ctx, *s.Objects, s.Propagation)
	case scenario.RewriteObjects:
		return e.Objects.Rewrite(ctx, *s.Objects, s.Server)
	case scenario.DeleteNamespace:
		return e.Objects.DeleteNamespace(ctx, *s.Objects)
	case scenario.ReleaseObjects:
		return e.Objects.Release(ctx, *s.Objects)
	}
	return e.collect(ctx, s.For)
}

// collect waits until everything that must be deleted is gone. It gives controllers a little more
// time than invariants allow, because invariants judge whether an object remains.
func (e *Executor) collect(ctx context.Context, limit time.Duration) error {
	limit += 5 * time.Second
	for began := e.Clock.Now(); e.Clock.Now()-began < limit; {
		done, err := e.Objects.Collected(ctx)
		if done || err != nil {
			return err
		}
		if err := e.Clock.Sleep(ctx, collectEvery); err != nil {
			return err
		}
	}
	return nil
}
