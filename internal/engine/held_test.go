package engine

import (
	"bytes"
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

// untouched is a cluster whose servers must get no requests. Every call that is not part of a step
// is a nil dereference, and fails the test.
type untouched struct {
	cluster.Reachable
	acts []string
}

func (c *untouched) act(what string) error {
	c.acts = append(c.acts, what)
	return nil
}

func (c *untouched) Start(context.Context) error                  { return c.act("start") }
func (c *untouched) KillServer(_ context.Context, n string) error { return c.act("kill " + n) }
func (*untouched) Serving(string) int                             { return 1 }
func (*untouched) RecordPanics()                                  {}
func (*untouched) Hops(time.Time) ([]history.Hop, error)          { return nil, nil }
func (c *untouched) Inject(_ context.Context, f fault.Fault) (cluster.ActiveFault, error) {
	return on{c, f}, c.act(f.String())
}

type on struct {
	*untouched
	fault.Fault
}

func (o on) Heal(context.Context) (history.Fault, error) {
	return history.Fault{Kind: string(o.Kind)}, o.act("heal " + o.Fault.String())
}

func toBeHeld(t *testing.T, o Options) (*untouched, *history.History) {
	t.Helper()
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}, {Name: "b"}}}, nil)
	plan := scenario.Plan{Servers: []scenario.Server{{Name: "a"}, {Name: "b"}}, Steps: []scenario.Step{
		{Action: scenario.Inject, Label: "x", Fault: &fault.Fault{Kind: fault.Cut, From: "b", To: "a"}}, {Action: scenario.Sweep}, {Action: scenario.Kill, Server: "a"},
	}}
	c := &untouched{}
	o.NoLoad, o.Status = true, t.Logf
	if err := Run(t.Context(), plan, c, recorder, o); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return c, h
}

// Without a load, the steps are carried out and no server gets a request.
func TestWithoutALoadNobodyIsAsked(t *testing.T) {
	c, h := toBeHeld(t, Options{})
	if want := []string{"start", "cut, b→a", "kill a", "heal cut, b→a"}; !slices.Equal(c.acts, want) {
		t.Errorf("the cluster was asked to %q, want %q", c.acts, want)
	}
	if len(h.Operations) != 0 || len(h.Steps) != 3 || len(h.Faults) != 2 {
		t.Errorf("%d operations, %d steps and %d faults are recorded", len(h.Operations), len(h.Steps), len(h.Faults))
	}
}

// Faults that are left active stay active, and the executor continues from that state.
func TestWhatIsLeftOnCanBeEndedLater(t *testing.T) {
	steps := &step.Executor{}
	c, h := toBeHeld(t, Options{LeaveOn: true, Steps: steps})
	if want := []string{"start", "cut, b→a", "kill a"}; !slices.Equal(c.acts, want) || len(h.Faults) != 0 {
		t.Errorf("the cluster was asked to %q, want %q; %d faults are recorded", c.acts, want, len(h.Faults))
	}
	if done, err := steps.Do(t.Context(), scenario.Step{Action: scenario.Heal, Label: "x"}); err != nil || !slices.Equal(done, []string{"heal: x"}) {
		t.Errorf("%q, error %v", done, err)
	}
	if _, err := steps.Do(t.Context(), scenario.Step{Action: scenario.Sweep}); err != nil {
		t.Error(errors.Join(errors.New("a step after the run asks servers"), err))
	}
}
