// Package engine runs a plan on real servers under load and records what happens. It judges
// nothing.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/definer"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/ownership"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// Options are what a run needs in addition to its plan.
type Options struct {
	Seed   uint64
	QPS    float64
	Status func(format string, args ...any)
	// Subject says whose proxy the servers run. A crowd is sent only to the reference, and to
	// servers without a proxy.
	Subject string
	// ReadOnly sets up nothing. The load only reads, as the administrator of the cluster.
	ReadOnly bool
	// NoLoad sets up nothing and sends nothing, not even requests that find out what servers serve.
	// The steps are carried out, but a sweep sends nothing.
	NoLoad bool
	// LeaveOn leaves active the faults that the steps left active, and does not record them, so
	// that a user can examine the cluster.
	LeaveOn bool
	// Steps carries out the plan, and further steps after Run ([step.Executor.Do]), which are not
	// recorded. If it is nil, Run makes its own executor.
	Steps *step.Executor
}

// ErrStopped is the cause with which a context ends when a signal stops the run.
var ErrStopped = errors.New("the run was stopped")

// Run starts the cluster and the load, carries out the steps, and closes the recorder. The error
// says why the plan was cut short. The history then has everything recorded until then.
func Run(ctx context.Context, plan scenario.Plan, cluster cluster.Reachable, recorder *history.Recorder, o Options) error {
	epoch := time.Now().Add(-recorder.Now())
	record := &witness{Recorder: recorder}
	return finish(plan, cluster, record, epoch, ended(context.Cause(ctx), run(ctx, plan, cluster, record, o)))
}

// finish records what is known only after a plan, and closes the record. epoch is the wall time at
// which the record began. err says why the plan was cut short.
func finish(plan scenario.Plan, cluster cluster.Reachable, record *witness, epoch time.Time, err error) error {
	cluster.RecordPanics()
	hops, hopsErr := cluster.Hops(epoch)
	record.tell(hops)
	err = errors.Join(err, hopsErr)
	if plan.ReadsEtcd() {
		err = errors.Join(err, tellRequests(cluster, record.Recorder, epoch))
	}
	return errors.Join(err, record.Close(err))
}

// ended says why a run ended. If the context was cancelled with a cause, the cause comes first,
// because an error that follows from the cause says less. If a run is complete, a signal or a
// cancellation without a cause does not make it fail.
func ended(cause, err error) error {
	stopped := errors.Is(cause, ErrStopped) || errors.Is(cause, context.Canceled)
	if cause == nil || errors.Is(err, cause) || err == nil && stopped {
		return err
	}
	return errors.Join(cause, err)
}

func run(ctx context.Context, plan scenario.Plan, cluster cluster.Reachable, record *witness, o Options) error {
	began := record.Now()
	r := newRunner(plan, cluster, record, o)
	if err := r.prepare(); err != nil {
		return err
	}
	switch err := cluster.Start(ctx); {
	case err != nil && errors.Is(context.Cause(ctx), ErrStopped): // what a server said then explains nothing
		return fmt.Errorf("not every server was ready: %w", ErrStopped)
	case err != nil:
		return err
	}
	o.Status("%d servers ready after %s", len(plan.Servers), (record.Now() - began).Round(100*time.Millisecond))
	return r.carryOut(ctx)
}

// runner carries out one plan.
type runner struct {
	Options
	plan    scenario.Plan
	cluster cluster.Reachable
	record  *witness
	config  step.Config
	steps   *step.Executor
	load    sender // nil before carryOut
}

func newRunner(plan scenario.Plan, cluster cluster.Reachable, record *witness, o Options) *runner {
	r := &runner{Options: o, plan: plan, cluster: cluster, record: record, steps: cmp.Or(o.Steps, new(step.Executor))}
	r.config = step.Config{
		Cluster: cluster, Clock: clock{record.Recorder}, Recorder: record, Definer: definer.New(cluster, plan.Names()), Status: o.Status,
		Identifies: o.Subject == scenario.SubjectReference,
		Begin:      func(i int, s *scenario.Step) { o.Status("step %d of %d: %s", i+1, len(plan.Steps), s) },
	}
	if plan.ReadsEtcd() {
		r.config.Objects = ownership.New(cluster, plan.Names(), func() map[string]history.Document { return r.load.served() },
			record.Written)
	}
	return r
}

// prepare configures the servers, none of which runs, and refuses steps that the cluster cannot
// carry out.
func (r *runner) prepare() error { return r.steps.Prepare(r.config, r.plan.Servers, r.plan.Steps) }

// carryOut carries out the plan on servers that run.
func (r *runner) carryOut(ctx context.Context) (err error) {
	recorder := r.record.Recorder
	endObjects := func() error { return nil }
	if r.plan.ReadsEtcd() {
		if endObjects, err = watchObjects(ctx, r.cluster, recorder); err != nil {
			return err
		}
	}
	if r.load, err = newSender(ctx, r.plan, r.cluster, recorder, r.Options); err != nil {
		return errors.Join(err, endObjects())
	}
	defer r.load.close()
	r.steps.Load = r.load
	defer func() { r.steps.Load = idle{} }() // for steps after this
	endInformers, err := inform(r.plan, r.cluster, r.load.served, recorder)
	if err != nil {
		return errors.Join(err, endObjects())
	}
	loading, cancel := context.WithCancel(ctx)
	defer cancel()
	var loaded sync.WaitGroup
	loaded.Go(func() { r.load.run(loading) })
	err = r.steps.Run(loading, r.plan.Steps)
	if !r.LeaveOn {
		r.steps.Heal()
	}
	cancel()
	loaded.Wait()
	r.load.count(ctx)
	endInformers()
	if !r.LeaveOn {
		r.steps.Finish()
	}
	return errors.Join(err, endObjects())
}

// clock is the time of a real run.
type clock struct{ *history.Recorder }

// Sleep implements [step.Clock].
func (clock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// witness keeps faults back until the run ends. A fault's evidence includes the requests that it
// affected. These may end later than the fault, or may be known only from audit logs.
type witness struct {
	*history.Recorder
	faults []history.Fault
}

// Fault implements [step.Recorder].
func (w *witness) Fault(f history.Fault) { w.faults = append(w.faults, f) }

// tell records the servers' own hops, and the faults with the requests that they affected.
func (w *witness) tell(hops []history.Hop) {
	for _, h := range hops {
		w.Hop(h)
	}
	for _, f := range w.faults {
		if f.Server != "" {
			f.Evidence.Requests = w.UnderWay(f.Server, f.Start, f.End)
		} else {
			f.Evidence.Requests = requestsThrough(f, hops)
		}
		w.Recorder.Fault(f)
	}
}

// requestsThrough counts the requests that, according to the servers' logs, went over the link of a
// fault while the fault was active. Requests that the fault blocked are counted as connections.
func requestsThrough(f history.Fault, hops []history.Hop) int {
	sentBy := map[string]bool{} // operations that From handled
	for _, h := range hops {
		if h.Server == f.From {
			sentBy[h.Operation] = true
		}
	}
	count := 0
	for _, h := range hops {
		if h.Server != f.To || h.Start > f.End || h.End < f.Start {
			continue
		}
		if f.From == fault.Client && !h.Rerouted || h.Rerouted && sentBy[h.Operation] {
			count++
		}
	}
	return count
}
