package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// Reusable is a cluster on which several plans can be carried out, one after the other.
type Reusable interface {
	cluster.Reachable
	cluster.Configurer
	cluster.Keeper
}

// Session carries out plans on one cluster, one after the other. Before each plan, every server is
// started again, because servers remember failures for a long time. The session also compares what
// exists with what existed at its beginning. So a plan finds the same state as on a new cluster,
// and has a history like that of a run. A Session is not safe for concurrent use.
type Session struct {
	cluster  Reusable
	options  Options
	servers  []string
	began    existing
	last     *runner // of the previous plan; nil if there was none
	patience time.Duration
}

// NewSession starts the servers and records what exists. Servers of every version that schedules
// may start must be among them, because each version creates its own objects. If schedules start
// controllers, controllers is their version: they create objects too. Otherwise it is empty.
func NewSession(ctx context.Context, servers []scenario.Server, controllers string, c Reusable, o Options) (*Session, error) {
	start := time.Now()
	s := &Session{cluster: c, options: o, patience: vanishing}
	for _, server := range servers {
		s.servers = append(s.servers, server.Name)
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	if _, _, err := identities(ctx, c, s.servers[0]); err != nil { // create the objects of the load
		return nil, err
	}
	if controllers != "" {
		if err := s.startControllers(ctx, controllers); err != nil {
			return nil, err
		}
	}
	var err error
	if s.began, err = s.settled(ctx); err != nil {
		return nil, err
	}
	if err := stopControllers(ctx, c); err != nil {
		return nil, err
	}
	if err := s.note(ctx, servers); err != nil {
		return nil, err
	}
	o.Status("%d servers ready after %s; %d keys in etcd", len(servers), time.Since(start).Round(100*time.Millisecond), len(s.began.keys))
	return s, nil
}

// CarryOut makes the cluster ready, carries out a plan, and leaves the cluster in the state after
// it. seed determines the choices of the load. begin starts the history of the plan; it is called
// when no server runs, and CarryOut closes the recorder. reset is the time that it took to get the
// cluster ready.
//
// left lists the differences from the beginning of the session that did not vanish. If there are
// any, the plan was not carried out. The error says why the plan was cut short. In both cases the
// session is over.
func (s *Session) CarryOut(ctx context.Context, plan scenario.Plan, seed uint64, begin func() *history.Recorder) (
	left []string, reset time.Duration, err error,
) {
	began := time.Now()
	if err := s.clear(ctx); err != nil {
		return nil, 0, err
	}
	record := &witness{Recorder: begin()}
	epoch := time.Now().Add(-record.Now())
	o := s.options
	o.Seed, o.Steps = seed, new(step.Executor)
	r := newRunner(plan, s.cluster, record, o)
	if left, err = s.restart(ctx, r); err != nil || len(left) > 0 {
		return left, 0, errors.Join(err, record.Close(err))
	}
	reset = time.Since(began)
	s.last = r
	return nil, reset, finish(plan, s.cluster, record, epoch, ended(context.Cause(ctx), r.carryOut(ctx)))
}

// clear removes the effects of the previous plan, and ends every server.
func (s *Session) clear(ctx context.Context) error {
	if s.last != nil {
		if err := errors.Join(stopControllers(ctx, s.cluster), s.undo(ctx)); err != nil {
			return fmt.Errorf("undo what a schedule has left: %w", err)
		}
	}
	if err := s.each(ctx, s.stop); err != nil {
		return err
	}
	if err := s.clean(ctx); err != nil {
		return err
	}
	return s.cluster.Forget()
}

// restart starts every server as the next plan wants it, and compares what exists.
func (s *Session) restart(ctx context.Context, next *runner) (left []string, err error) {
	if err := next.prepare(); err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, server := range next.plan.Servers {
		versions[server.Name] = server.Version
	}
	refused := make(chan string, len(s.servers))
	err = s.each(ctx, func(ctx context.Context, name string) error {
		err := s.cluster.StartServer(ctx, name, versions[name])
		if refusal := (*scenario.RefusedError)(nil); errors.As(err, &refusal) {
			refused <- name
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	close(refused)
	for name := range refused {
		next.steps.Refused(name)
	}
	return s.difference(ctx, next.plan.Servers)
}

// undo carries out, without a record, the steps that undo all effects of the previous plan.
func (s *Session) undo(ctx context.Context) error {
	var errs []error
	for _, step := range s.last.steps.State().Undo() {
		if step.Action == scenario.Start || step.Action == scenario.Restart {
			continue // all servers are started again anyway
		}
		_, err := s.last.steps.Do(ctx, step)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// controllersWork is the suffix of a key that exists as soon as controllers work: the garbage
// collector has a service account, and the controllers make one after the other.
const controllersWork = "/serviceaccounts/kube-system/generic-garbage-collector"

// startControllers starts controllers and waits until they work. They are healthy before.
func (s *Session) startControllers(ctx context.Context, version string) error {
	controlled, ok := s.cluster.(cluster.Controllers)
	if !ok {
		return errors.New("this backend runs no controllers: choose backend local")
	}
	if err := controlled.StartControllers(ctx, version, s.servers[0]); err != nil {
		return err
	}
	work, err := s.await(ctx, func() (bool, error) {
		keys, err := s.cluster.Keys(ctx)
		return slices.ContainsFunc(keys, func(key string) bool { return strings.HasSuffix(key, controllersWork) }), err
	})
	if err == nil && !work {
		err = fmt.Errorf("the garbage collector has no service account %s after kube-controller-manager %s was healthy: see logs/controllers.log",
			s.patience, version)
	}
	return err
}

// stopControllers stops the controllers if there are any. They stop before the servers do, because
// they end when they cannot reach a server.
func stopControllers(ctx context.Context, on Reusable) error {
	if controlled, ok := on.(cluster.Controllers); ok {
		return controlled.StopControllers(ctx)
	}
	return nil
}

// each calls do for every server, in parallel.
func (s *Session) each(ctx context.Context, do func(ctx context.Context, server string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range s.servers {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}

// stop ends a running server gracefully, so that it removes its leases.
func (s *Session) stop(ctx context.Context, name string) error {
	if s.cluster.Serving(name) == 0 {
		return nil
	}
	return s.cluster.StopServer(ctx, name)
}
