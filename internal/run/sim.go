package run

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/search"
	"github.com/skewproof/skewproof/sim/tape"
)

// SimulatedSubjects lists the subjects of the simulator.
var SimulatedSubjects = []string{scenario.SubjectBuiltin, scenario.SubjectReference, scenario.SubjectNone, sim.SubjectAlpha}

// MaxSimulated is the largest number of servers in a simulated run.
const MaxSimulated = 100

// Simulated is the environment of a simulated run. The machine does not matter to such a run.
const Simulated = "simulated, in virtual time"

// simBackend runs the real proxy code of every server on a virtual clock and a simulated network.
type simBackend struct{}

func (simBackend) check(p *Plan) error {
	for _, v := range p.Schedule.Versions() {
		if _, err := recorded.Get(v); err != nil {
			return fmt.Errorf("--backend %s: %w", scenario.BackendSim, err)
		}
		if _, _, err := sim.PolicyOf(p.Spec.Subject, v); err != nil {
			return err
		}
	}
	return nil
}

func (simBackend) describe(*Plan, *history.Run) {}

func (simBackend) dryRun(p *Plan, out io.Writer) error {
	fmt.Fprintln(out, "\nServers, in virtual time:")
	for _, s := range p.Schedule.Servers {
		policy, on, err := sim.PolicyOf(p.Spec.Subject, s.Version)
		if err != nil {
			return wrong(err)
		}
		name := policy.Name
		if !on {
			name = "the feature switched off"
		}
		fmt.Fprintf(out, "  %s, %s, with %s\n", s.Name, s.Version, name)
	}
	return p.printSchedule(out)
}

func (simBackend) prepare(context.Context, *Plan) error { return nil }

// carryOut also prints how much virtual time passed.
func (simBackend) carryOut(ctx context.Context, j *job, judge func(cut error)) error {
	if err := j.begin(programs{}, Simulated); err != nil {
		return err
	}
	began := time.Now()
	result, err := j.simulate(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if err := j.Dir.SaveHistory(result.History); err != nil {
		return err
	}
	var cut error
	if result.Stopped {
		cut = engine.ErrStopped
	}
	j.recorded = result.History
	j.recorded.Sort() // the order in which the file is read
	judge(cut)
	fmt.Fprintf(j.Out, "\nSimulated %s of virtual time in %s: %d requests, %d events, trace %s.\n", result.Until.Round(time.Second),
		took.Round(time.Millisecond), len(j.recorded.Operations), result.Events, search.HashText(result.Hash))
	return nil
}

// simulate carries out the plan. If ctx ends first, the history has what was recorded until then,
// and its end says that the run was stopped.
func (j *job) simulate(ctx context.Context) (*sim.Result, error) {
	simulator := sim.New(sim.SetupOf(j.Spec.Subject))
	defer simulator.Close()
	c := sim.CaseOf(j.Schedule, j.Run.QPS)
	return simulator.Run(&c, tape.Seeded(j.Run.Seed),
		sim.Options{Run: j.Run, StopAtError: true, Stop: func() bool { return ctx.Err() != nil }})
}
