package step_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// fake is everything that an executor needs, without processes. It records its calls. Time passes
// with each action and each sleep.
type fake struct {
	now     history.Time
	acts    []string
	failing string // the act that fails
	err     error  // the error of that act; nil: the disk is on fire
	asked   map[string]int
	full    error           // the error of the recorder
	down    map[string]bool // servers that do not run

	steps   []history.Step
	faults  []history.Fault
	effects []history.Effect
}

func (f *fake) act(what string) error {
	f.now += time.Second
	f.acts = append(f.acts, what)
	if what != f.failing {
		return nil
	}
	if f.err != nil {
		return f.err
	}
	return errors.New("the disk is on fire")
}

func (f *fake) Start(context.Context) error { return f.act("start all") }
func (f *fake) StartServer(_ context.Context, n, v string) error {
	return f.becomes(n, false, "start "+n+v)
}
func (f *fake) StopServer(_ context.Context, n string) error       { return f.becomes(n, true, "stop "+n) }
func (f *fake) KillServer(_ context.Context, n string) error       { return f.becomes(n, true, "kill "+n) }
func (f *fake) PauseServer(_ context.Context, n string) error      { return f.act("pause " + n) }
func (f *fake) ResumeServer(_ context.Context, n string) error     { return f.act("resume " + n) }
func (f *fake) ReplaceServer(_ context.Context, n, v string) error { return f.act("replace " + n + v) }

// becomes acts on a server. After the act the server runs or does not run, unless the act fails.
func (f *fake) becomes(server string, down bool, what string) error {
	if err := f.act(what); err != nil {
		return err
	}
	if f.down == nil {
		f.down = map[string]bool{}
	}
	f.down[server] = down
	return nil
}

// Serving is 0 for a server that does not run.
func (f *fake) Serving(server string) int {
	if f.down[server] {
		return 0
	}
	return 1
}

func (f *fake) Inject(_ context.Context, what fault.Fault) (cluster.ActiveFault, error) {
	if err := f.act("inject " + what.String()); err != nil {
		return nil, err
	}
	return &fakeFault{f, what, f.now}, nil
}

type fakeFault struct {
	*fake
	what  fault.Fault
	start history.Time
}

func (a *fakeFault) Heal(context.Context) (history.Fault, error) {
	err := a.act("heal " + a.what.String())
	return history.Fault{
		ID: 99, Kind: string(a.what.Kind), From: a.what.From, To: a.what.To, Detail: a.what.Detail(), Blocks: a.what.Blocks(), Start: a.start, End: a.now,
	}, err
}

func (f *fake) Now() history.Time { return f.now }
func (f *fake) Sleep(ctx context.Context, d history.Time) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.now += max(0, d)
	return nil
}

func (f *fake) Step(s history.Step)     { f.steps = append(f.steps, s) }
func (f *fake) Fault(o history.Fault)   { f.faults = append(f.faults, o) }
func (f *fake) Effect(e history.Effect) { f.effects = append(f.effects, e) }
func (f *fake) Asked(server string) int { return f.asked[server] }
func (f *fake) Err() error              { return f.full }

func (f *fake) Sweep(context.Context) error { return f.act("sweep") }
func (f *fake) Observe(_ context.Context, servers ...string) {
	for _, s := range servers {
		f.acts = append(f.acts, "observe "+s)
	}
}

func (f *fake) Define(_ context.Context, d scenario.Definition) error {
	return f.act("define " + d.Resource)
}
func (f *fake) Undefine(_ context.Context, d scenario.Definition) error {
	return f.act("undefine " + d.Resource)
}

// done returns the acts except observations.
func (f *fake) done() []string {
	return slices.DeleteFunc(slices.Clone(f.acts), func(s string) bool { return len(s) > 7 && s[:7] == "observe" })
}

// configurable is a fake whose servers can be set up, and whose discovery documents can be broken.
type configurable struct {
	fake
	setups  map[string]*scenario.Setup
	refuses string // a server that starts with no setup
	dialled int
	silent  bool   // no connections are made any more
	lease   string // the content of every endpoint lease
}

func (c *configurable) Configure(server string, setup *scenario.Setup) error {
	if c.setups == nil {
		c.setups = map[string]*scenario.Setup{}
	}
	c.setups[server] = setup
	return c.act("configure " + server + " " + setup.String())
}

func (c *configurable) StartServer(ctx context.Context, n, v string) error {
	if n == c.refuses && c.setups[n] != nil {
		return &scenario.RefusedError{Server: n, Why: "I would rather not"}
	}
	return c.fake.StartServer(ctx, n, v)
}

func (c *configurable) Dialled(string, string) int {
	if !c.silent {
		c.dialled++
	}
	return c.dialled
}

// seen is a fake cluster's [cluster.Configurer]. Its Effect is not that of a recorder.
type seen struct{ *configurable }

func (s seen) Effect(_ context.Context, server string) (history.Effect, error) {
	return history.Effect{Server: server, Advertised: s.lease, Setup: s.setups[server].String()}, nil
}

func (c *configurable) BreakDiscovery(server, path string, how fault.DiscoveryFailure) error {
	return c.act("break " + server + path + " " + string(how))
}

// RestoreDiscovery reports three failed fetches.
func (c *configurable) RestoreDiscovery(server, path string) (int, error) {
	return 3, c.act("restore " + server + path)
}

var twoServers = []scenario.Server{{Name: "a", Version: "v1"}, {Name: "b", Version: "v1"}}

func config(f *fake, of cluster.Cluster) step.Config {
	return step.Config{Cluster: of, Clock: f, Recorder: f, Load: f, Definer: f}
}

// perform carries out steps on two servers, and ends the faults that they left active.
func perform(t *testing.T, f *fake, steps ...scenario.Step) error {
	t.Helper()
	return performWith(t, t.Context(), config(f, f), twoServers, steps...)
}

func performWith(t *testing.T, ctx context.Context, c step.Config, servers []scenario.Server, steps ...scenario.Step) error {
	t.Helper()
	c.Status = t.Logf
	var e step.Executor
	if err := e.Prepare(c, servers, steps); err != nil {
		return err
	}
	err := e.Run(ctx, steps)
	e.Heal()
	e.Finish()
	return err
}

func at(action scenario.Action, server string) scenario.Step {
	return scenario.Step{Action: action, Server: server}
}

func cut(label, from, to string) scenario.Step {
	return scenario.Step{Action: scenario.Inject, Label: label, Fault: &fault.Fault{Kind: fault.Cut, From: from, To: to}}
}
