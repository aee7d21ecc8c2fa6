// Package step carries out the steps of a plan on a cluster and records them. Real and simulated
// runs share it, with different clocks, clusters and recorders.
package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Clock is the time of a run.
type Clock interface {
	// Now is the time since the run began.
	Now() history.Time
	// Sleep waits for d, which may be 0 or less, or until ctx ends. Then the error is the cause of
	// ctx.
	Sleep(ctx context.Context, d history.Time) error
}

// Recorder records a run. [history.Recorder] is one.
type Recorder interface {
	// Step records a finished step.
	Step(history.Step)
	// Fault records a fault that has ended.
	Fault(history.Fault)
	// Effect records the observed effect of a server's configuration.
	Effect(history.Effect)
	// Asked is the number of finished requests to a server so far.
	Asked(server string) int
	// Err says why nothing more can be recorded. It is nil as long as recording works.
	Err() error
}

// Load sends requests to the servers while steps are carried out.
type Load interface {
	// Sweep asks every server for everything that any of them serves or lists.
	Sweep(ctx context.Context) error
	// Observe reads what these servers serve now, after a step that may have changed it.
	Observe(ctx context.Context, servers ...string)
}

// Crowds lets one caller keep many watches open at a time. A [Load] may be one.
type Crowds interface {
	// Gather starts a crowd at a server. disperse ends it and records it ([history.Crowd]). The error
	// is a [scenario.RefusedStep] if there is nothing that the crowd could ask for.
	Gather(ctx context.Context, server string) (disperse func(), err error)
}

// Definer creates and deletes definitions of resources (see [scenario.Definition]). Servers serve
// these in addition to the built-in resources.
type Definer interface {
	// Define creates a definition, or changes its versions, and returns when one server has it. The
	// error is a [scenario.RefusedStep] if the control plane does not accept it.
	Define(ctx context.Context, d scenario.Definition) error
	// Undefine deletes a definition and returns when one server lacks it. It is not an error if the
	// definition does not exist.
	Undefine(ctx context.Context, d scenario.Definition) error
}

// Objects creates and deletes the objects that controllers act on.
type Objects interface {
	// Create creates the namespace, the owners and their dependents, and returns when all exist.
	Create(ctx context.Context, o scenario.Objects) error
	// CreateWorkloads creates the namespace, and the workloads through a server, as its clients reach
	// it. It records which fields are lost ([history.Written]).
	CreateWorkloads(ctx context.Context, o scenario.Objects, through string) error
	// CreateQuota creates a ResourceQuota in the namespace that counts the objects of each resource of
	// owners that has namespaces.
	CreateQuota(ctx context.Context, o scenario.Objects) error
	// DeleteOwners asks for the deletion of the owners and does not wait for it.
	DeleteOwners(ctx context.Context, o scenario.Objects, how scenario.Propagation) error
	// Rewrite reads the owners through a server, as its clients reach it, and updates and patches
	// them in every way. It is not an error if the server refuses.
	Rewrite(ctx context.Context, o scenario.Objects, through string) error
	// Migrate asks for a migration of the storage version of each owner's resource: through a server,
	// as its clients reach it, or around it if it refuses.
	Migrate(ctx context.Context, o scenario.Objects, through string) error
	// Migrated reports whether these migrations have succeeded or failed.
	Migrated(ctx context.Context, o scenario.Objects) (bool, error)
	// DeleteNamespace asks for the deletion of the namespace and does not wait for it.
	DeleteNamespace(ctx context.Context, o scenario.Objects) error
	// Release removes the finalizers that Create has given to objects that are held.
	Release(ctx context.Context, o scenario.Objects) error
	// Collected reports whether everything is gone that must go after the deletions so far.
	Collected(ctx context.Context) (bool, error)
}

// Config is what an [Executor] needs. All fields except the last three are required.
type Config struct {
	Cluster  cluster.Cluster
	Clock    Clock
	Recorder Recorder
	Load     Load // may be set after Prepare
	Definer  Definer
	Objects  Objects // nil if the cluster is not a [cluster.Controllers]
	// Identifies says that servers find a server whose proxy is switched off, and so has published no
	// address, by its certificate. The reference does. Servers with a plain kube-apiserver do not.
	Identifies bool
	// Begin is called when a step begins. index counts from 0. Nil means no call.
	Begin func(index int, s *scenario.Step)
	// Status takes one line for people. Nil means no output.
	Status func(format string, args ...any)
	// GoOn carries out the steps after a failed one. Without GoOn the first failure ends the plan.
	GoOn bool
	// Tolerant accepts starting a server that runs, and ending, pausing or resuming a server that
	// does not run, because a simulated schedule cannot know that a server has crashed. A restart
	// then starts the server.
	Tolerant bool
}

// Executor carries out the steps of a plan: Prepare, then Run, then Heal and Finish. After that, a
// held cluster takes further steps with Do. It is not safe for concurrent use.
type Executor struct {
	Config
	state scenario.State
	names []string
	// disturbed is when the last disturbing step ended. At first, it is when Run began.
	disturbed history.Time
	faults    int // the number of faults so far, which gives their IDs
	on        []active
	crowds    []crowd
	effect    string // of the present step, see history.Step.Effect
}

// These errors name an action that a backend cannot do, and say what to do instead.
var (
	errNoSetups      = errors.New("this backend cannot start servers with a setup of their own: choose another scenario, or backend local or sim")
	errNoControllers = errors.New("this backend runs no controllers: choose another scenario, or backend local")
	errNoTests       = errors.New("this backend cannot run Kubernetes' own tests: choose backend local")
	errNoAdmin       = errors.New("this backend has no etcd that the step could change: choose backend local or sim")
	errNoCrowds      = &scenario.RefusedStep{Err: errors.New("no crowd: this run sends none; choose backend local or kind, with a load")}
	errNoBreaker     = errors.New("this backend cannot let a discovery document fail: choose another scenario, or backend local or sim")
)

// Prepare configures, before any server starts, the servers that start with their own setup. It
// refuses steps that the cluster cannot carry out. An executor may be prepared again.
func (e *Executor) Prepare(config Config, servers []scenario.Server, steps []scenario.Step) error {
	e.Config, e.disturbed, e.faults = config, 0, 0
	clear(e.on)
	e.names, e.on, e.crowds = e.names[:0], e.on[:0], nil
	e.state.Reset(servers)
	configurer, configures := e.Cluster.(cluster.Configurer)
	_, breaks := e.Cluster.(cluster.DiscoveryBreaker)
	_, controls := e.Cluster.(cluster.Controllers)
	_, tests := e.Cluster.(cluster.Tester)
	_, administers := e.Cluster.(cluster.Administrator)
	for i := range steps {
		switch {
		case steps[i].Setup != nil && !configures:
			return errNoSetups
		case steps[i].Action == scenario.BreakDiscovery && !breaks:
			return errNoBreaker
		case steps[i].AboutControllers() && (!controls || e.Objects == nil):
			return errNoControllers
		case steps[i].Action.Administers() && !administers:
			return errNoAdmin
		case steps[i].AboutTests() && !tests:
			return errNoTests
		}
	}
	for i := range servers {
		e.names = append(e.names, servers[i].Name)
		switch {
		case servers[i].Setup == nil:
		case !configures:
			return errNoSetups
		default:
			if err := configurer.Configure(servers[i].Name, servers[i].Setup); err != nil {
				return err
			}
		}
	}
	for i := range servers {
		if servers[i].Setup != nil {
			e.misconfigure(configurer, servers[i].Name)
		}
	}
	return nil
}

// Disturbed is when the last disturbing step ended. If there was none, it is when Run began.
func (e *Executor) Disturbed() history.Time { return e.disturbed }

// Run carries out the steps. The error names the step that failed. Faults stay active; see
// [Executor.Heal].
func (e *Executor) Run(ctx context.Context, steps []scenario.Step) error {
	e.disturbed = e.Clock.Now()
	for i := range steps {
		s := &steps[i]
		record := history.Step{Index: i, Sentence: s.String(), Start: e.Clock.Now(), Disturbs: s.Disturbs(), Defined: s.Defines()}
		switch s.Action {
		case scenario.DeleteLease:
			record.LeaseOf = s.Server
		case scenario.WithdrawDiscovery:
			record.Discovery = history.DiscoveryWithdrawn
		case scenario.GrantDiscovery:
			record.Discovery = history.DiscoveryGranted
		}
		if e.Begin != nil {
			e.Begin(i, s)
		}
		e.effect = ""
		err := e.do(ctx, s)
		record.Effect = e.effect
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		record.End = e.Clock.Now()
		if record.Disturbs {
			e.disturbed = record.End
		}
		switch {
		case err == nil:
		case refuses(err):
			record.Refused, err = err.Error(), nil
		default:
			record.Error = err.Error()
		}
		e.Recorder.Step(record)
		if err != nil && !e.GoOn {
			return fmt.Errorf("step %d, %s: %w", i+1, s, err)
		}
		if err := e.Recorder.Err(); err != nil {
			return err
		}
	}
	return nil
}

// refuses reports whether an error means that a step was not possible. Such an error is not a
// failure of the step: what it was to provoke is not judged.
func refuses(err error) bool {
	var refused *scenario.RefusedStep
	return errors.As(err, &refused)
}

func (e *Executor) do(ctx context.Context, s *scenario.Step) error {
	setup, refused := e.state.Setup(s.Server), e.state.Refused(s.Server)
	if err := e.state.Apply(*s); err != nil {
		return err
	}
	switch s.Action {
	case scenario.Soak:
		return e.Clock.Sleep(ctx, s.For)
	case scenario.Outlast:
		return e.Clock.Sleep(ctx, e.disturbed+s.For-e.Clock.Now())
	case scenario.Converge:
		return e.converge(ctx, s.For)
	case scenario.Sweep:
		return e.Load.Sweep(ctx)
	case scenario.Inject:
		return e.inject(ctx, s)
	case scenario.Heal:
		return e.heal(ctx, s.Label)
	case scenario.StartControllers, scenario.StopControllers, scenario.CreateObjects, scenario.CreateQuota, scenario.DeleteOwners,
		scenario.DeleteNamespace,
		scenario.ReleaseObjects, scenario.RewriteObjects, scenario.MigrateObjects, scenario.CollectObjects:
		return e.control(ctx, s)
	case scenario.StartTests:
		return e.Cluster.(cluster.Tester).StartTests(ctx, s.Version, s.Server, *s.Tests) // see Prepare
	case scenario.AwaitTests:
		return e.Cluster.(cluster.Tester).AwaitTests(ctx, s.For)
	case scenario.CompactEtcd, scenario.DefragmentEtcd, scenario.DeleteLease, scenario.WithdrawDiscovery, scenario.GrantDiscovery:
		return e.administer(ctx, s)
	case scenario.StartCrowd:
		return e.gather(ctx, s)
	case scenario.EndCrowd:
		e.disperse(s.Server)
		return nil
	case scenario.BreakDiscovery:
		return e.breakDiscovery(s)
	case scenario.RestoreDiscovery:
		return e.restoreDiscovery(s.Server, s.Path)
	case scenario.Define, scenario.Undefine:
		do := e.Definer.Define
		if s.Action == scenario.Undefine {
			do = e.Definer.Undefine
		}
		err := do(ctx, *s.Definition)
		if err == nil || refuses(err) { // a refused definition may have taken some of its names
			e.Load.Observe(ctx, e.names...)
		}
		return err
	}
	if err := e.act(ctx, s, setup, refused); err != nil {
		return err
	}
	if s.Action != scenario.Pause { // a paused server would not answer
		e.Load.Observe(ctx, s.Server)
	}
	return nil
}

// act carries out a step about the process of one server. setup is the server's setup before the
// step. refused is true if the server had refused that setup.
func (e *Executor) act(ctx context.Context, s *scenario.Step, setup *scenario.Setup, refused bool) error {
	switch s.Action {
	case scenario.Stop:
		return e.tolerate(e.Cluster.StopServer(ctx, s.Server))
	case scenario.Kill:
		return e.harm(ctx, s, e.Cluster.KillServer)
	case scenario.Pause:
		return e.harm(ctx, s, e.Cluster.PauseServer)
	case scenario.Resume:
		e.endProcessFault(s.Server, scenario.Pause)
		return e.tolerate(e.Cluster.ResumeServer(ctx, s.Server))
	case scenario.Start:
		e.endProcessFault(s.Server, scenario.Kill)
	case scenario.Restart, scenario.Replace:
	default:
		return fmt.Errorf("this skewproof does not know how to %s", s.Action)
	}
	switch {
	case setup != nil || s.Setup != nil:
		return e.reconfigure(ctx, s, setup != nil && !refused, refused)
	case s.Action == scenario.Start:
		return e.tolerate(e.Cluster.StartServer(ctx, s.Server, s.Version))
	}
	err := e.Cluster.ReplaceServer(ctx, s.Server, s.Version)
	if e.Tolerant && errors.Is(err, cluster.ErrNotRunning) {
		return e.Cluster.StartServer(ctx, s.Server, s.Version)
	}
	return err
}

// tolerate removes an error of a step about a server that was already in the wanted state, if
// Tolerant is set.
func (e *Executor) tolerate(err error) error {
	if e.Tolerant && (errors.Is(err, cluster.ErrRunning) || errors.Is(err, cluster.ErrNotRunning)) {
		return nil
	}
	return err
}
