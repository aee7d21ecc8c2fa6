package sim

import (
	"context"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
	"github.com/skewproof/skewproof/sim/vtime"
)

// readyPatience is how long a step waits for a server to be ready before the step fails.
const readyPatience = 30 * time.Second

// driver lets the step executor work in virtual time, in its own task. It is the executor's clock,
// load, definer, cluster (cluster.go) and recorder.
type driver struct {
	s      *Simulator
	c      *Case
	task   *vtime.Task
	steps  step.Executor
	over   bool
	strict bool // the run ends at the first step that fails
}

// reset prepares a case whose servers have not been started.
func (d *driver) reset(s *Simulator, c *Case, strict bool) error {
	d.s, d.c, d.task, d.over, d.strict = s, c, nil, false, strict
	config := step.Config{Cluster: d, Clock: d, Recorder: (*recorder)(d), Load: d, Definer: d, Begin: d.begin, GoOn: !strict, Tolerant: true, Identifies: s.setup.Reference}
	return d.steps.Prepare(config, c.Servers, c.Steps)
}

// run waits for the servers and carries out the steps. After each step it sends the requests that
// follow the step.
func (d *driver) run(t *vtime.Task) {
	d.task = t
	ctx := context.Background()
	_ = d.Start(ctx) // ignore the error: the steps may be about servers that do not become ready
	d.s.startLoad()
	d.s.requestsAfter(d.c, 0)
	if err := d.steps.Run(ctx, d.c.Steps); err != nil {
		d.s.history.End.Error = err.Error()
	}
	d.steps.Finish()
	d.over = true
}

// begin records in the trace that a step begins.
func (d *driver) begin(i int, s *scenario.Step) {
	d.s.trace.add(d.Now(), eventStep, i, 0, hashString(string(s.Action))^hashString(s.Server))
}

func (d *driver) wake() {
	if d.task != nil && !d.over {
		d.task.Wake()
	}
}

// await waits for a condition, for a limited time, and reports whether it became true.
func (d *driver) await(patience time.Duration, condition func() bool) bool {
	until := d.task.Now() + patience
	d.s.loop.At(until, nil, d.wake)
	for !condition() {
		if d.task.Now() >= until {
			return false
		}
		d.task.Wait()
	}
	return true
}

func (d *driver) soak(until vtime.Time) {
	for d.task.Now() < until {
		d.task.Sleep(until - d.task.Now())
	}
}

// Now and Sleep implement [step.Clock].
func (d *driver) Now() history.Time { return d.s.loop.Now() }

// Sleep waits in virtual time.
func (d *driver) Sleep(_ context.Context, t history.Time) error {
	d.soak(d.Now() + t)
	return nil
}

// recorder is the driver as a [step.Recorder]. The history is in memory, so writing it never fails.
type recorder driver

// Step records a step, and sends the requests that follow it.
func (r *recorder) Step(s history.Step) {
	r.s.history.Steps = append(r.s.history.Steps, s)
	if s.Error == "" || !r.strict {
		r.s.requestsAfter(r.c, s.Index+1)
	}
}

func (r *recorder) Fault(f history.Fault) { r.s.history.Faults = append(r.s.history.Faults, f) }

func (r *recorder) Effect(e history.Effect) { r.s.history.Effects = append(r.s.history.Effects, e) }

func (r *recorder) Asked(server string) int { return r.s.asked[r.s.byName[server]] }
func (r *recorder) Err() error              { return nil }

// Sweep implements [step.Load].
func (d *driver) Sweep(context.Context) error {
	d.s.sweep(d)
	return nil
}

// Observe does nothing, because servers record what they serve by themselves.
func (d *driver) Observe(context.Context, ...string) {}

// Define and Undefine implement [step.Definer].
func (d *driver) Define(_ context.Context, what scenario.Definition) error {
	return d.s.define(what, true)
}

// Undefine deletes a definition.
func (d *driver) Undefine(_ context.Context, what scenario.Definition) error {
	return d.s.define(what, false)
}
