package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/search"
	"github.com/skewproof/skewproof/sim/tape"
)

// The backends: what the servers run on.
const (
	backendLocal = scenario.BackendLocal // real processes
	backendSim   = scenario.BackendSim   // the proxy's own code, in virtual time
)

// simulatedHere is the environment of a simulated run: nothing of the machine matters to it.
const simulatedHere = "simulated, in virtual time"

// simulate carries out a plan in virtual time, judges it as any other run, and says how much time that was.
func (f *runFlags) simulate(ctx context.Context, run history.Run, plan scenario.Plan, out io.Writer) error {
	dir, err := newRunDir(f.out, run.Scenario, f.subject, time.Now())
	if err != nil {
		return err
	}
	defer dir.tidy()
	defer func() { _ = os.Remove(dir.files().Logs) }() // there are none
	run.Environment = []string{simulatedHere}
	if err := dir.writeSpec(spec{Run: run, Plan: plan}); err != nil {
		return notRun(err)
	}
	began := time.Now()
	result, err := f.carryOut(ctx, run, plan)
	if err != nil {
		return notRun(err)
	}
	took := time.Since(began)
	if err := saveHistory(dir, result.History); err != nil {
		return notRun(err)
	}
	verdict := judgeRun(dir, f.strict, out)
	fmt.Fprintf(out, "\nSimulated %s of virtual time in %s: %d requests, %d events, trace %s.\n",
		result.Until.Round(time.Second), took.Round(time.Millisecond), len(result.History.Operations), result.Events, search.HashText(result.Hash))
	return verdict
}

// carryOut runs the plan under the load of a scenario. It returns early when ctx ends; the run then goes on, unheeded, until the process ends.
func (f *runFlags) carryOut(ctx context.Context, run history.Run, plan scenario.Plan) (*sim.Result, error) {
	simulator := sim.New(sim.Setup{
		Version: recorded.Get,
		Sidecar: f.subject == scenario.SubjectReference,
		Policy: func(version string) (proxy.Policy, bool) {
			policy, on, _ := simulatedPolicy(f.subject, version) // checkSimulated has seen that there is no error
			return policy, on
		},
	})
	type outcome struct {
		result *sim.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		c := sim.Case{Servers: plan.Servers, Steps: plan.Steps, Load: &sim.Load{QPS: f.qps, Traffic: plan.Traffic}}
		result, err := simulator.Run(&c, tape.Seeded(f.seed), sim.Options{Run: run, StopAtError: true})
		simulator.Close()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return nil, errors.New("interrupted before there was a verdict")
	}
}

// saveHistory writes the history of a run that is over.
func saveHistory(dir runDir, h *history.History) (err error) {
	file, err := dir.createHistory()
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil { // the run can be had again, half a history is good for nothing
			err = errors.Join(fmt.Errorf("%w; free some space, or choose another directory with --out", err), os.Remove(dir.history()))
		}
	}()
	return history.Write(file, h)
}
