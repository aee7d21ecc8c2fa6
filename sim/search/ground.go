package search

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

// ground has the places at which policies are tested: schedules and scenarios. It runs several at
// once.
type ground struct {
	spec    Spec // of the schedules; its policy does not matter
	first   uint64
	workers int
}

// scenarioQPS is the load of a scenario, in requests a second. It is a little more than the
// scenarios' minimum pressure needs.
const scenarioQPS = 110

// runner runs places under one policy. It makes its simulators when it needs them.
type runner struct {
	spec      Spec
	setup     sim.Setup
	cases     *Generator
	schedules *sim.Simulator
	scenarios *sim.Simulator
}

func newRunner(spec Spec) (*runner, error) {
	setup, err := spec.Setup()
	if err != nil {
		return nil, err
	}
	cases, err := NewGenerator(spec)
	return &runner{spec: spec, setup: setup, cases: cases}, err
}

func (r *runner) close() {
	for _, s := range []*sim.Simulator{r.schedules, r.scenarios} {
		if s != nil {
			s.Close()
		}
	}
}

// run carries out a place on a tape; nil means the place's own tape.
func (r *runner) run(p place, on *tape.Tape) (*sim.Result, error) {
	if on == nil {
		on = tape.Seeded(p.seed)
	}
	if p.scenario == nil {
		if r.schedules == nil {
			r.schedules = sim.New(r.setup)
		}
		c, _ := r.cases.Case(p.seed)
		return r.schedules.Run(c, on, sim.Options{Run: r.spec.history(p.seed)})
	}
	if r.scenarios == nil {
		setup := r.setup
		setup.Version = recorded.Get // a scenario may need any resource, and has its own versions
		r.scenarios = sim.New(setup)
	}
	plan := p.scenario.Plan(scenario.Parameters{Servers: max(3, p.scenario.MinServers), From: r.spec.From, To: r.spec.To,
		Bounds: history.DefaultBounds})
	c := sim.CaseOf(plan, scenarioQPS)
	return r.scenarios.Run(&c, on, sim.Options{Run: history.Run{About: p.scenario.About, Pressure: plan.Pressure, Bounds: plan.Bounds},
		StopAtError: true})
}

// outcome runs a place and judges it. With near, it also runs tapes near the place's own.
func (r *runner) outcome(p place, near bool) outcome {
	tapes := []*tape.Tape{nil}
	if near {
		tapes = p.nearTapes()
	}
	for _, on := range tapes {
		result, err := r.run(p, on)
		if err != nil {
			return outcome{err: err.Error()}
		}
		if e := result.History.End.Error; e != "" && p.scenario != nil {
			return outcome{err: e}
		}
		if violated := sees(result); len(violated) > 0 {
			return outcome{violated: violated}
		}
	}
	return outcome{}
}

// run carries out places under the policy of a spec, in any order, and returns the outcomes in the
// order of the places.
func (g *ground) run(ctx context.Context, spec Spec, places []place, near bool) ([]outcome, error) {
	outcomes := make([]outcome, len(places))
	err := g.each(ctx, spec, len(places), func(r *runner, i int) { outcomes[i] = r.outcome(places[i], near) })
	return outcomes, err
}

// each calls do with the numbers from 0 to n-1, in any order. Each worker has its own runner.
func (g *ground) each(ctx context.Context, spec Spec, n int, do func(r *runner, i int)) error {
	if _, err := newRunner(spec); err != nil {
		return err
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(g.workers, n) {
		all.Go(func() {
			r, _ := newRunner(spec) // as above
			defer r.close()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(r, i)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return errEnded
	}
	return nil
}

// costs are the costs of a policy.
type costs struct {
	fetches  float64 // fetches of discovery documents by all servers, in an hour in which nothing happens
	attempts float64 // attempts at peers, for each request that needs a peer
	latency  float64 // waiting time for answers from peers, in seconds
}

// over returns the costs as ratios to other costs.
func (c costs) over(o costs) reports.Costs {
	ratio := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	return reports.Costs{FetchesPerHour: c.fetches, Fetches: o.fetches, Attempts: ratio(c.attempts, o.attempts),
		Latency: ratio(c.latency, o.latency)}
}

// costing is the number of schedules from which the costs of requests are measured.
const costing = 1000

// costs measures a policy.
func (g *ground) costs(ctx context.Context, spec Spec, places []place) (costs, error) {
	var schedules []place
	for _, p := range places {
		if p.scenario == nil && len(schedules) < costing {
			schedules = append(schedules, p)
		}
	}
	var mu sync.Mutex
	var c costs
	var attempts, needed, answered int
	var waited time.Duration
	err := g.each(ctx, spec, len(schedules), func(r *runner, i int) {
		result, err := r.run(schedules[i], nil)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		attempts, needed = attempts+result.Counts.Attempts, needed+result.Counts.Forwarded
		answered, waited = answered+result.Counts.Answered, waited+result.Counts.Waited
	})
	if err != nil {
		return c, err
	}
	if needed > 0 {
		c.attempts = float64(attempts) / float64(needed)
	}
	if answered > 0 {
		c.latency = waited.Seconds() / float64(answered)
	}
	r, err := newRunner(spec)
	if err != nil {
		return c, err
	}
	defer r.close()
	idle := sim.New(r.setup)
	defer idle.Close()
	quiet := &sim.Case{Settled: true, Steps: []scenario.Step{{Action: scenario.Soak, For: time.Hour}}}
	for i := range spec.Servers {
		quiet.Servers = append(quiet.Servers, scenario.Server{Name: scenario.ServerName(i), Version: spec.version(i == 0)})
	}
	result, err := idle.Run(quiet, &tape.Tape{}, sim.Options{})
	if err != nil {
		return c, err
	}
	c.fetches = float64(result.Counts.Fetches)
	return c, nil
}
