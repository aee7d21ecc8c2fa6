package suite

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// Bench repeats scenarios. It shows how long they take, and whether their verdicts are the same
// every time.
type Bench struct {
	Options
	// Spec holds the settings of all runs.
	Spec run.Spec
	// Names are the scenarios. If it is empty, Labels choose them.
	Names  []string
	Labels string
	// Runs is how often each scenario is run.
	Runs int
}

// repeated is a scenario with its repetitions.
type repeated struct {
	plan    *run.Plan
	samples []sample
}

// sample is the result of one repetition.
type sample struct {
	wall, ready reports.Seconds
	operations  int
	verdicts    []reports.Invariant
}

// Run runs all of the scenarios once, then all of them again, and shows the table. The outcome is a
// pass if no verdict differed between runs. If there is an error, Run shows the results until then.
func (b *Bench) Run(ctx context.Context) (invariant.Outcome, error) {
	all, err := b.choose()
	if err != nil {
		return "", err
	}
	var plans []*run.Plan
	for _, r := range all {
		plans = append(plans, r.plan)
	}
	if err := b.Prepare(ctx, "bench-"+plans[0].Spec.Backend+"-"+plans[0].Spec.Subject, plans); err != nil {
		return "", err
	}
	trouble := b.collect(ctx, all)
	outcome, err := compare(b.Console.Out, all)
	if trouble != nil {
		err = trouble
	}
	return outcome, err
}

// choose returns the scenarios that are named or that have the labels. It checks all of them before
// any scenario runs.
func (b *Bench) choose() (all []*repeated, err error) {
	switch names := len(b.Names) > 0; {
	case b.Runs < 1:
		return nil, run.Usagef("--runs %d: want at least 1", b.Runs)
	case names && b.Labels != "":
		return nil, run.Usagef("names and --labels: give one of them")
	case !names && b.Labels == "":
		return nil, run.Usagef("which scenarios? Give their names, or --labels; 'skewproof list' shows them")
	}
	if err := ownServers(b.Spec); err != nil {
		return nil, err
	}
	names := b.Names
	if b.Labels != "" {
		chosen, err := Choose(b.Labels)
		if err != nil {
			return nil, err
		}
		for _, s := range chosen {
			if s.Limits.Allows(b.Spec.Backend) {
				names = append(names, s.Name)
			}
		}
		if len(names) == 0 {
			return nil, run.Usagef("--labels %q choose nothing that runs on %s", b.Labels, b.Spec.Backend)
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, run.Usagef("%s is named twice: --runs says how many times", name)
		}
		spec := b.Spec
		spec.Scenario = name
		plan, err := spec.Plan()
		if err != nil {
			return nil, err
		}
		all = append(all, &repeated{plan: plan})
	}
	return all, nil
}

// collect carries out the runs. It stops at the first run that cannot be carried out completely.
func (b *Bench) collect(ctx context.Context, all []*repeated) error {
	var tasks []task
	for i := range b.Runs {
		for _, r := range all {
			tasks = append(tasks, taskOf(r.plan, filepath.Join(b.Out, fmt.Sprintf("%02d", i+1), r.plan.Spec.Scenario)))
		}
	}
	for i, finished := range b.carryOut(ctx, tasks) {
		n, r, name := i/len(all)+1, all[i%len(all)], tasks[i].spec.Scenario
		switch {
		case !finished.Begun: // there is no log
			return fmt.Errorf("run %d of %s: %s", n, name, finished.Problem)
		case finished.Problem != "":
			return fmt.Errorf("run %d of %s: %s; what it said is in %s.log", n, name, finished.Problem, tasks[i].spec.Out)
		}
		report := finished.Report
		s := sample{wall: reports.SecondsOf(finished.Took), operations: report.Metadata.Operations, verdicts: report.Invariants}
		for _, server := range report.Servers {
			if len(server.Versions) > 0 && server.Versions[0].ReadySeconds != nil {
				s.ready = max(s.ready, *server.Versions[0].ReadySeconds)
			}
		}
		r.samples = append(r.samples, s)
		fmt.Fprintf(b.Console.Progress, "run %d of %d: %s: %.1f s, servers ready after %.1f s, %d requests\n",
			n, b.Runs, name, s.wall, s.ready, s.operations)
	}
	return nil
}

// compare prints the results of the repetitions of each scenario. The outcome is a pass if all
// verdicts were the same every time.
func compare(out io.Writer, all []*repeated) (invariant.Outcome, error) {
	fmt.Fprintf(out, "%s\n", strings.Join(run.Machine(), ", "))
	differing, total := 0, 0
	for _, r := range all {
		fmt.Fprintf(out, "\n%s; runs: %d\n\n", r.plan.Spec.Command(), len(r.samples))
		if len(r.samples) == 0 { // the bench was ended early
			continue
		}
		if err := printFigures(out, r.samples); err != nil {
			return "", err
		}
		differing += printVerdicts(out, r.samples)
		if len(r.samples) > 1 {
			total += len(r.samples[0].verdicts)
		}
	}
	if total == 0 {
		_, err := fmt.Fprintln(out, "\nno verdict could be compared: nothing ran twice")
		return invariant.OutcomeInconclusive, err
	}
	_, err := fmt.Fprintf(out, "\n%d of %d verdicts differed from run to run\n", differing, total)
	if differing > 0 {
		return invariant.OutcomeInconclusive, err
	}
	return invariant.OutcomePass, err
}

// printFigures prints the minimum, the median and the maximum of each measured figure.
func printFigures(out io.Writer, samples []sample) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tleast\tmedian\tmost\t")
	row := func(name, format string, value func(sample) float64) {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = value(s)
		}
		slices.Sort(values)
		fmt.Fprintf(table, "%s\t"+format+"\t"+format+"\t"+format+"\t\n", name, values[0], values[len(values)/2], values[len(values)-1])
	}
	row("wall time, s", "%.1f", func(s sample) float64 { return float64(s.wall) })
	row("until all servers are ready, s", "%.1f", func(s sample) float64 { return float64(s.ready) })
	row("requests recorded", "%.0f", func(s sample) float64 { return float64(s.operations) })
	return table.Flush()
}

// printVerdicts prints how often each invariant got which verdict. It returns how many invariants
// did not get the same verdict each time.
func printVerdicts(out io.Writer, samples []sample) (differing int) {
	fmt.Fprintln(out)
	for i, v := range samples[0].verdicts {
		counts := map[invariant.Outcome]int{}
		for _, s := range samples {
			counts[s.verdicts[i].Outcome]++
		}
		var parts []string
		for _, o := range []invariant.Outcome{invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive} {
			if counts[o] > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", o, counts[o]))
			}
		}
		if len(counts) > 1 {
			differing++
		}
		fmt.Fprintf(out, "%-24s %s\n", v.Name, strings.Join(parts, ", "))
	}
	return differing
}
