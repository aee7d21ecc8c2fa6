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
// exists with what existed at its beginning. So a plan finds the same state as on a new cluster. A
// Session is not safe for concurrent use.
type Session struct {
	cluster  Reusable
	recorder history.Collector
	options  Options
	servers  []string
	epoch    time.Time
	began    existing
	last     *runner // of the previous plan; nil if there was none
	patience time.Duration
}

// Schedule is one plan for a session.
type Schedule struct {
	Plan scenario.Plan
	// Seed determines the choices of the load.
	Seed uint64
}

// Result is the result of a schedule.
type Result struct {
	// From and To are the limits of the schedule's part of the session's history.
	From, To history.Time
	// Reset is the time that it took to get the cluster ready for the schedule.
	Reset time.Duration
	// Left lists the differences from the beginning of the session that did not vanish. If there
	// are any, the schedule was not carried out, and the session is over.
	Left []string
	// Err says why the schedule was cut short. Then the session is also over.
	Err error
}

// NewSession starts the servers and records what exists. Servers of every version that schedules
// may start must be among them, because each version creates its own objects. If schedules start
// controllers, controllers is their version: they create objects too. Otherwise it is empty.
func NewSession(ctx context.Context, servers []scenario.Server, controllers string, c Reusable, recorder history.Collector, o Options) (
	*Session, error,
) {
	s := &Session{cluster: c, recorder: recorder, options: o, epoch: time.Now().Add(-recorder.Now()), patience: vanishing}
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
	o.Status("%d servers ready after %s; %d keys in etcd", len(servers), recorder.Now().Round(100*time.Millisecond), len(s.began.keys))
	return s, nil
}

// CarryOut makes the cluster ready, carries out a schedule, and records it. It leaves the cluster
// in the state after the schedule.
func (s *Session) CarryOut(ctx context.Context, schedule Schedule) Result {
	began := s.recorder.Now()
	o := s.options
	o.Seed, o.Steps = schedule.Seed, new(step.Executor)
	record := &witness{Recorder: s.recorder.Recorder}
	r := newRunner(schedule.Plan, s.cluster, record, o)
	left, err := s.reset(ctx, r)
	if err != nil || len(left) > 0 {
		return Result{Left: left, Err: err}
	}
	result := Result{From: s.recorder.Now()}
	result.Reset = result.From - began
	s.last = r
	result.Err = ended(context.Cause(ctx), r.carryOut(ctx))
	s.cluster.RecordPanics()
	hops, err := s.cluster.Hops(s.epoch)
	record.tell(hops)
	result.Err = errors.Join(result.Err, err)
	if schedule.Plan.ReadsEtcd() {
		result.Err = errors.Join(result.Err, tellRequests(s.cluster, s.recorder.Recorder, s.epoch))
	}
	result.To = s.recorder.Now()
	return result
}

// reset removes the effects of the previous plan, starts every server as the next plan wants it,
// and compares what exists.
func (s *Session) reset(ctx context.Context, next *runner) (left []string, err error) {
	if s.last != nil {
		if err := errors.Join(stopControllers(ctx, s.cluster), s.undo(ctx)); err != nil {
			return nil, fmt.Errorf("undo what a schedule has left: %w", err)
		}
	}
	if err := s.each(ctx, s.stop); err != nil {
		return nil, err
	}
	if err := s.clean(ctx); err != nil {
		return nil, err
	}
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
	if err := s.cluster.ForgetRequests(); err != nil {
		return nil, err
	}
	left, err = s.difference(ctx, next.plan.Servers)
	s.recorder.Forget(s.recorder.Now())
	s.recorder.ForgetObjects()
	return left, err
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
