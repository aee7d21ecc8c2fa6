package step

import (
	"context"
	"errors"
	"slices"

	"github.com/skewproof/skewproof/internal/scenario"
)

// Do carries out one more step on a cluster that is held after Run. It returns sentences about what
// it did, also if there is an error. A heal without a label heals all faults of links and restores
// all discovery documents. Do records no step. After an error, Do can be called again. Each call
// begins with the present state of the servers.
func (e *Executor) Do(ctx context.Context, s scenario.Step) (done []string, err error) {
	steps := []scenario.Step{s}
	if s.Action == scenario.Heal && s.Label == "" {
		steps = slices.DeleteFunc(e.state.Undo(), func(s scenario.Step) bool {
			return s.Action != scenario.Heal && s.Action != scenario.RestoreDiscovery
		})
		if len(steps) == 0 {
			return nil, errors.New("heal: no fault is on")
		}
	}
	e.look()
	var errs []error
	for i := range steps {
		err := steps[i].Validate()
		if err == nil {
			err = e.do(ctx, &steps[i])
		}
		if err == nil {
			done = append(done, steps[i].String())
		}
		errs = append(errs, err)
	}
	return done, errors.Join(errs...)
}

// State is the present state. It is valid until the next step.
func (e *Executor) State() *scenario.State {
	e.look()
	return &e.state
}

// look corrects the state of servers: a server may have crashed, or failed to start, and a kubelet
// may have started it again.
func (e *Executor) look() {
	for _, name := range e.names {
		runs := e.Cluster.Serving(name) != 0
		if e.state.Refused(name) || runs == e.state.Runs(name) {
			continue
		}
		found := scenario.Step{Action: scenario.Kill, Server: name}
		if runs {
			found = scenario.Step{Action: scenario.Start, Server: name, Setup: e.state.Setup(name)}
		}
		e.report(e.state.Apply(found), "note that %s has changed by itself", name)
	}
}
