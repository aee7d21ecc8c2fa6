package run

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/scenario"
)

// These are the times that a run on real processes needs in addition to the waits of its plan, on a
// machine that is not overloaded.
const (
	timeOfARun   = 12 * time.Second // sandbox, etcd, servers, judging and reports
	timeOfAStart = 8 * time.Second
	timeOfASweep = 4 * time.Second
)

// Expected estimates how long a run of the plan takes on real processes.
func Expected(plan scenario.Plan) time.Duration {
	takes := timeOfARun
	for _, s := range plan.Steps {
		takes += s.For
		switch s.Action {
		case scenario.Start, scenario.Restart, scenario.Replace, scenario.StartControllers:
			takes += timeOfAStart
		case scenario.Sweep:
			takes += timeOfASweep
		}
	}
	return takes
}

// Limit is how long a run of the plan may take before it is ended. It is generous, because servers
// are ready within seconds, but not always on a loaded machine.
func Limit(plan scenario.Plan) time.Duration {
	limit := 5 * time.Minute
	for _, s := range plan.Steps {
		limit += 2 * s.For
		switch s.Action {
		case scenario.Start, scenario.Stop, scenario.Restart, scenario.Replace, scenario.Sweep, scenario.StartControllers,
			scenario.StopControllers:
			limit += 20 * time.Second
		}
	}
	return limit
}

// Preview is for a person who starts a run whose servers are not there yet. It prints what the run
// will do and about how long each part takes, carries out the same run in the simulator, and shows
// its summary. It does nothing if all programs are there, or if the backend needs none. An error
// says why the run cannot be carried out; a run that cannot be simulated is no error.
func (p *Plan) Preview(ctx context.Context, c Console) error {
	if p.Spec.Backend != scenario.BackendLocal {
		return nil
	}
	if err := p.backend.prepare(ctx, p); err != nil {
		return err
	}
	_, missing, err := p.cached()
	if err != nil || len(missing) == 0 {
		return nil // Run reports an error of the cache if it matters
	}
	p.printParts(c, missing)
	if err := p.simulateFirst(ctx, c); err != nil {
		fmt.Fprintf(c.Progress, "Not simulated: %v\n", err)
	}
	return nil
}

// printParts prints the parts of the run in their order.
func (p *Plan) printParts(c Console, missing []binaries.Ref) {
	fmt.Fprintf(c.Progress, "Not in the cache yet: %s. This run, in order:\n", names(missing))
	fmt.Fprintf(c.Progress, "  - simulates %s, within seconds\n", p.Scenario.Name)
	all := Expected(p.Schedule)
	lasts := binaries.Rounded(all)
	store := &binaries.Store{}
	for _, ref := range missing {
		build := store.Estimate(ref)
		all += build
		fmt.Fprintf(c.Progress, "  - downloads %s, or builds it, which takes about %s on %d CPUs\n", ref, binaries.Rounded(build), runtime.NumCPU())
	}
	fmt.Fprintf(c.Progress, "  - carries out %s on these servers, about %s\nIn all about %s if all are built. Later runs have the servers.\n\n",
		p.Scenario.Name, lasts, binaries.Rounded(all))
}

// simulateFirst carries out the run on the backend sim, in a directory beside that of the run.
func (p *Plan) simulateFirst(ctx context.Context, c Console) error {
	s := p.Spec
	s.Backend, s.Etcd, s.Binaries, s.Keep = scenario.BackendSim, "", nil, false
	if s.Out == "" {
		s.Out = DefaultOut(p.Scenario.Name + "-" + s.Subject + "-simulated")
	} else {
		s.Out = filepath.Clean(s.Out) + "-simulated"
	}
	simulated, err := s.Plan()
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Out, "Simulated, before the servers are there:")
	_, err = simulated.Run(ctx, c)
	fmt.Fprintln(c.Out)
	return err
}
