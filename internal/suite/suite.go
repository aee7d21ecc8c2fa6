// Package suite carries out many runs and makes one report from them. A run is a [run.Spec]. Each
// run has its own process, and several run at a time. So if a run fails in any way, its sandbox
// ends with its process, and the suite continues.
//
// Bench, Matrix and Conformance use such runs. Clients holds the clusters of some runs.
// Each suite checks all of its runs with [run.Spec.Plan] before it begins one.
package suite

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// Options are the options of all suites.
type Options struct {
	// Program is the skewproof that carries out the runs. Empty means this program.
	Program string
	// Out is the directory of reports and runs, which must be empty. If Out is empty, the suite
	// makes a directory below _out, named after suite and time.
	Out string
	// Parallel is how many runs are carried out at a time. 0 means 1.
	Parallel int
	// Reproduce is the command line that repeats the suite, for the report.
	Reproduce string
	Console   run.Console
	// Binaries are the programs that the runs start. Prepare fills them in.
	Binaries []history.Binary
}

// Prepare makes the directory, gets the binaries that the runs need, and warns if the machine is
// too small for this number of parallel runs. If no directory is given, its name comes from the
// suite.
func (o *Options) Prepare(ctx context.Context, name string, plans []*run.Plan) (err error) {
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return err
		}
	}
	if o.Out, err = run.FreshDir(cmp.Or(o.Out, run.DefaultOut(name)), "reports"); err != nil {
		return err
	}
	if o.Binaries, err = run.Fetch(ctx, plans, o.Console.Progress); err != nil {
		_ = os.Remove(o.Out) // nothing was run
		return err
	}
	has := func(is func(run.Spec) bool) bool {
		return slices.ContainsFunc(plans, func(p *run.Plan) bool { return is(p.Spec) })
	}
	backend := scenario.BackendSim
	if has(func(s run.Spec) bool { return s.Backend != scenario.BackendSim }) {
		backend = scenario.BackendLocal
	}
	reference := has(func(s run.Spec) bool { return s.Subject == scenario.SubjectReference })
	if why := machine().lacks(o.Parallel, backend, reference); why != "" {
		fmt.Fprintf(o.Console.Progress, "skewproof: --parallel %d is more than this machine has room for: %s; what it does not keep up with will be inconclusive\n",
			o.Parallel, why)
	}
	return nil
}

// carryOut carries out the runs of the suite. Prepare must have been called.
func (o *Options) carryOut(ctx context.Context, tasks []task) iter.Seq2[int, Finished] {
	return carryOutAll(ctx, o.Program, o.Parallel, tasks)
}

// Once carries out each plan once, and yields the results in the order of the plans. name is for
// the directory, if none is given.
func (o *Options) Once(ctx context.Context, name string, plans []*run.Plan) (iter.Seq2[int, Finished], error) {
	if err := o.Prepare(ctx, name, plans); err != nil {
		return nil, err
	}
	tasks := make([]task, len(plans))
	for i, p := range plans {
		tasks[i] = taskOf(p, filepath.Join(o.Out, p.Spec.Scenario))
	}
	return o.carryOut(ctx, tasks), nil
}

// ownServers refuses a backend whose servers the run does not start itself.
func ownServers(s run.Spec) error {
	if !slices.Contains([]string{scenario.BackendLocal, scenario.BackendKind, scenario.BackendSim}, s.Backend) {
		return run.Usagef("--backend %q: want local, kind or sim", s.Backend)
	}
	return nil
}

// Render writes a document into dir and shows it.
func Render(d reports.Tables, dir string, c run.Console) error {
	return c.Show(dir, reports.SaveTables(dir, d), func(shown reports.SummaryOptions) error {
		return reports.WriteTables(c.Out, d, shown)
	})
}
