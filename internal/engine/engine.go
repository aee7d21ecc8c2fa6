// Package engine carries out a plan on a cluster under load and writes down what happens. It judges nothing.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Cluster is what a backend gives the engine. Local processes are one, the nodes of a kind cluster another, servers that run already a third.
//
// Start comes first, once; only a [Configurer] is asked for anything before. RecordPanics and Hops come last, whatever has failed.
//
// The six methods that act on one server return when it is as they say. What takes long gives up, with an error, when ctx is over or a limit of the backend
// has passed. After an error, but for a [scenario.RefusedError], what the server is is not defined: the run is over. They record what becomes of the server;
// that it ends by itself is recorded at any time, as a crash. They may be called concurrently for different servers; the engine has one under way at a time,
// beside any number of the other methods. Where the servers are somebody else's all six are refused, and an end is recorded as one in good order, since nobody
// here knows.
type Cluster interface {
	// Start brings everything up and returns when every server is ready.
	Start(ctx context.Context) error
	// StartServer starts a server that does not run, and returns when it is ready. An empty version is the one that it had last. It is an error if the server
	// runs already, paused or not; if it ends before it is ready; or if what runs then is of another version. A server whose setup ([Configurer]) may keep
	// it from starting, and does, is not running afterwards: that is a [scenario.RefusedError].
	StartServer(ctx context.Context, name, version string) error
	// StopServer asks a server to end gracefully (SIGTERM), and returns when all its processes have ended, however they did. It is an error if the server
	// does not run. One that is paused may not hear it: resume it first.
	StopServer(ctx context.Context, name string) error
	// KillServer ends a server at once (SIGKILL), paused or not, and returns when all its processes have ended. It is an error if the server does not run.
	KillServer(ctx context.Context, name string) error
	// PauseServer stops the execution of a server (SIGSTOP): its connections stay open, and nothing answers. It returns when the signal has been sent. It is
	// an error if the server does not run; one that is paused stays so.
	PauseServer(ctx context.Context, name string) error
	// ResumeServer lets a paused server run on (SIGCONT). It returns when the signal has been sent, which may be before it answers again. It is an error if
	// the server does not run; one that is not paused runs on.
	ResumeServer(ctx context.Context, name string) error
	// ReplaceServer is StopServer, and then StartServer in the same place: same address, same identity, as in an upgrade. An empty version is the one that
	// it has. It is an error if the server does not run. It is not for a server that has a setup of its own, or is to get one: stop, configure and start that.
	ReplaceServer(ctx context.Context, name, version string) error
	// Serving is the incarnation of a server that is ready at this moment; 0 if it is not, or no server has that name. Incarnations are counted from 1: each
	// start is one, or, where nobody sees a start, each time without a gap in which the server is ready. One that was paused counts as ready. It never waits.
	Serving(name string) int

	// Fabric is where faults are injected; nil where none ever are.
	Fabric() *fabric.Fabric

	// URL is what clients dial to reach a server. Direct and FrontDoor are the administrator's ways around links and faults: to the
	// kube-apiserver itself, for ground truth, and to what clients meet, which may be a sidecar in front of it.
	URL(name string) (string, error)
	Direct(name string) (*rest.Config, error)
	FrontDoor(name string) (*rest.Config, error)
	// Admin, User (with a client certificate) and Anonymous are identities, without a host.
	Admin() *rest.Config
	User(name string) (*rest.Config, error)
	Anonymous() *rest.Config

	// Hops are the servers' own accounts of what they handled; epoch is the wall time of the run's start.
	Hops(epoch time.Time) ([]history.Hop, error)
	// RecordPanics records panics that servers survived.
	RecordPanics()
}

// Options are what a run needs beside its plan.
type Options struct {
	Seed   uint64
	QPS    float64
	Status func(format string, args ...any)
	// ReadOnly is for servers that are somebody else's: nothing is set up on them, and the load reads only, as the cluster's administrator.
	ReadOnly bool
}

// Run brings the cluster up, puts load on it, carries out the steps, and closes the recorder. The error says why the plan could
// not be carried out to its end; what was found on the way is in the history.
func Run(ctx context.Context, plan scenario.Plan, cluster Cluster, recorder *history.Recorder, o Options) error {
	epoch := time.Now().Add(-recorder.Now())
	faults, err := run(ctx, plan, cluster, recorder, o)
	// Whoever ended the run knows best why; whatever failed for it tells less.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) && (err != nil || !errors.Is(cause, context.Canceled)) {
		err = errors.Join(cause, err)
	}
	cluster.RecordPanics()
	hops, hopsErr := cluster.Hops(epoch)
	for _, h := range hops {
		recorder.Hop(h)
	}
	for _, f := range faults {
		f.Evidence.Requests = requests(f, recorder, hops)
		recorder.Fault(f)
	}
	err = errors.Join(err, hopsErr)
	return errors.Join(err, recorder.Close(err))
}

// run returns the faults of links and processes, whose evidence lacks the requests that they met: until the load has ended, and the audit logs are read.
func run(ctx context.Context, plan scenario.Plan, cluster Cluster, recorder *history.Recorder, o Options) ([]history.Fault, error) {
	began := recorder.Now()
	steps := executor{cluster: cluster, recorder: recorder, status: o.Status, active: map[string]active{}}
	if err := steps.configureFirst(plan); err != nil {
		return nil, err
	}
	if err := checkSpoils(plan, cluster); err != nil {
		return nil, err
	}
	if err := cluster.Start(ctx); err != nil {
		return nil, err
	}
	o.Status("%d servers ready after %s", len(plan.Servers), (recorder.Now() - began).Round(100*time.Millisecond))
	load, err := newLoad(ctx, plan, cluster, recorder, o)
	if err != nil {
		return nil, err
	}
	defer load.clients.Close()
	load.truth.observe(ctx, load.servers...)
	ctx, cancel := context.WithCancel(ctx)
	var loaded sync.WaitGroup
	loaded.Go(func() { load.run(ctx) })
	steps.load, steps.disturbed = load, recorder.Now()
	err = steps.whole(ctx, plan.Steps, func() {
		cancel()
		loaded.Wait()
	})
	return steps.healed, err
}

// executor carries out steps one after the other.
type executor struct {
	cluster  Cluster
	recorder *history.Recorder
	load     *load
	status   func(string, ...any)
	active   map[string]active // faults of links that are on, by label
	faults   int               // how many there have been, of links and processes: the IDs
	healed   []history.Fault   // those that are not any more
	// disturbed is when the last step that disturbs ended; at first, when the cluster was ready.
	disturbed history.Time
	servers   []string // all of the plan, if any is ever set up in a way of its own
	spoilt    spoils   // documents that fail now
	aggregated
	processFaults
	configuration
}

// active is a fault of a link that is on, with its number in this run.
type active struct {
	id int
	*fabric.Active
}

// whole carries out steps, heals what they have left on, and lets the load end. What setups hinder lasts for as long as anything is asked.
func (e *executor) whole(ctx context.Context, steps []scenario.Step, endLoad func()) error {
	err := e.all(ctx, steps)
	endLoad()
	e.relieveAll()
	return err
}

func (e *executor) all(ctx context.Context, steps []scenario.Step) error {
	defer e.healAll()
	for i, s := range steps {
		e.status("step %d of %d: %s", i+1, len(steps), s)
		record := history.Step{Index: i, Sentence: s.String(), Start: e.recorder.Now(), Disturbs: s.Disturbs()}
		err := e.do(ctx, s)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		record.End = e.recorder.Now()
		if record.Disturbs {
			e.disturbed = record.End
		}
		if err != nil {
			record.Error = err.Error()
		}
		e.recorder.Step(record)
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s, err)
		}
		if err := e.recorder.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (e *executor) do(ctx context.Context, s scenario.Step) error {
	switch s.Action {
	case scenario.Soak:
		return soak(ctx, s.For)
	case scenario.Outlast:
		return soak(ctx, e.disturbed+s.For-e.recorder.Now())
	case scenario.Sweep:
		return e.load.sweep(ctx)
	case scenario.Inject:
		injected, err := e.cluster.Fabric().Inject(ctx, *s.Fault)
		if err == nil {
			e.faults++
			e.active[s.Label] = active{e.faults, injected}
		}
		return err
	case scenario.Heal:
		return e.heal(ctx, s.Label)
	case scenario.Define, scenario.Undefine:
		do := e.define
		if s.Action == scenario.Undefine {
			do = e.undefine
		}
		if err := do(ctx, *s.Definition); err != nil {
			return err
		}
		e.load.truth.observe(ctx, e.load.servers...)
		return nil
	case scenario.BreakDiscovery, scenario.RestoreDiscovery:
		return e.spoil(s)
	}
	if err := e.act(ctx, s); err != nil {
		return err
	}
	if s.Action != scenario.Pause { // it would not answer
		e.load.truth.observe(ctx, s.Server)
	}
	return nil
}

// act does what concerns the process of one server.
func (e *executor) act(ctx context.Context, s scenario.Step) error {
	switch s.Action {
	case scenario.Start:
		e.endProcessFault(s.Server, scenario.Kill)
		if handled, err := e.restart(ctx, s); handled {
			return err
		}
		return e.cluster.StartServer(ctx, s.Server, s.Version)
	case scenario.Stop:
		return e.cluster.StopServer(ctx, s.Server)
	case scenario.Kill:
		e.beginProcessFault(s.Server, scenario.Kill)
		return e.cluster.KillServer(ctx, s.Server)
	case scenario.Pause:
		e.beginProcessFault(s.Server, scenario.Pause)
		return e.cluster.PauseServer(ctx, s.Server)
	case scenario.Resume:
		e.endProcessFault(s.Server, scenario.Pause)
		return e.cluster.ResumeServer(ctx, s.Server)
	case scenario.Restart, scenario.Replace:
		if handled, err := e.restart(ctx, s); handled {
			return err
		}
		return e.cluster.ReplaceServer(ctx, s.Server, s.Version)
	default:
		return fmt.Errorf("this skewproof does not know how to %s", s.Action)
	}
}

func (e *executor) heal(ctx context.Context, label string) error {
	on, ok := e.active[label]
	if !ok {
		return fmt.Errorf("no fault %q is on", label)
	}
	delete(e.active, label)
	record, err := on.Heal(ctx) // a record even if somebody interfered by hand
	record.ID = on.id
	e.healed = append(e.healed, record)
	return err
}

// healAll ends what the plan left on, so that the history tells of it. It must work after a cancelled run too.
func (e *executor) healAll() {
	for label := range e.active {
		if err := e.heal(context.Background(), label); err != nil {
			e.status("heal %q: %v", label, err)
		}
	}
	e.endAllProcessFaults()
	e.mendAll()
}

func soak(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
