package step

import (
	"context"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/scenario"
)

// collectEvery is the interval at which the executor checks whether controllers are done.
const collectEvery = time.Second

// control carries out steps about controllers and the objects that they act on. If an optional step
// fails, the error is a [scenario.RefusedStep].
func (e *Executor) control(ctx context.Context, s *scenario.Step) error {
	err := e.doControl(ctx, s)
	if err != nil && s.Optional && ctx.Err() == nil {
		return &scenario.RefusedStep{Err: err}
	}
	return err
}

func (e *Executor) doControl(ctx context.Context, s *scenario.Step) error {
	controllers := e.Cluster.(cluster.Controllers) // see Prepare
	switch s.Action {
	case scenario.StartControllers:
		if s.Elect {
			return controllers.StartCandidate(ctx, s.Version, s.Server)
		}
		return controllers.StartControllers(ctx, s.Version, s.Server)
	case scenario.StopControllers:
		return controllers.StopControllers(ctx)
	case scenario.CreateObjects:
		if len(s.Objects.Workloads) > 0 {
			return e.Objects.CreateWorkloads(ctx, *s.Objects, s.Server)
		}
		return e.Objects.Create(ctx, *s.Objects)
	case scenario.CreateQuota:
		return e.Objects.CreateQuota(ctx, *s.Objects)
	case scenario.DeleteOwners:
		return e.Objects.DeleteOwners(ctx, *s.Objects, s.Propagation)
	case scenario.RewriteObjects:
		return e.Objects.Rewrite(ctx, *s.Objects, s.Server)
	case scenario.MigrateObjects:
		if err := e.Objects.Migrate(ctx, *s.Objects, s.Server); err != nil {
			return err
		}
		return e.await(ctx, s.For, func(ctx context.Context) (bool, error) { return e.Objects.Migrated(ctx, *s.Objects) })
	case scenario.DeleteNamespace:
		return e.Objects.DeleteNamespace(ctx, *s.Objects)
	case scenario.ReleaseObjects:
		return e.Objects.Release(ctx, *s.Objects)
	}
	return e.await(ctx, s.For, func(ctx context.Context) (bool, error) {
		done, err := e.Objects.Collected(ctx)
		if s.Optional && ctx.Err() == nil {
			err = nil // a server may answer later
		}
		return done && err == nil, err
	})
}

// await waits until controllers are done. It gives them a little more time than invariants allow,
// because invariants judge what they have not done.
func (e *Executor) await(ctx context.Context, limit time.Duration, ready func(context.Context) (bool, error)) error {
	limit += 5 * time.Second
	for began := e.Clock.Now(); e.Clock.Now()-began < limit; {
		done, err := ready(ctx)
		if done || err != nil {
			return err
		}
		if err := e.Clock.Sleep(ctx, collectEvery); err != nil {
			return err
		}
	}
	return nil
}
