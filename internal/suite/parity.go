package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim/parity"
)

// Parity carries out scenarios on real processes and in the simulator, with the same plans, and
// compares the verdicts.
type Parity struct {
	Options
	// Spec holds the settings of all runs.
	Spec run.Spec
	// Names are the scenarios. If it is empty, all scenarios that run on both backends are used.
	// Subjects are the subjects.
	Names, Subjects []string
	// Local is the directory of an earlier Parity. The real runs in it are not repeated.
	Local string
	// Causes makes Parity also list the kinds of violations that only one of the backends shows.
	Causes bool
}

// pair is one scenario and subject on both backends.
type pair struct {
	scenario, subject string
	plans             []*run.Plan // local, sim
	reports           [2]reports.RunReport
	disagreements     []parity.Disagreement
}

// parityBackends are the backends to compare.
var parityBackends = []string{scenario.BackendLocal, scenario.BackendSim}

// Run compares the verdicts and shows the table. The outcome is a pass if every disagreement is
// known. If there is an error, Run shows the comparison until then.
func (p *Parity) Run(ctx context.Context) (invariant.Outcome, error) {
	pairs, err := p.pairs()
	if err != nil {
		return "", err
	}
	missing, err := p.readLocal(pairs)
	if err != nil {
		return "", err
	}
	if err := p.Prepare(ctx, "parity", missing); err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(p.Out) }() // this removes the directory only if nothing was run
	var tasks []task
	for _, c := range pairs {
		for i, plan := range c.plans {
			t := task{} // empty: the earlier run is used
			if c.reports[i].Kind == "" {
				t = taskOf(plan, filepath.Join(p.Out, c.name(i)))
			}
			tasks = append(tasks, t)
		}
	}
	for i, f := range p.carryOut(ctx, tasks) {
		n, c := i/2, pairs[i/2]
		if err := c.finish(i%2, f, ctx.Err() != nil); err != nil {
			if n > 0 {
				_ = p.print(pairs[:n]) // shows what was compared; the error above matters more
				fmt.Fprintf(p.Console.Out, "%d of %d were compared.\n", n, len(pairs))
			}
			return "", err
		}
		if i%2 == 1 {
			fmt.Fprintf(p.Console.Progress, "%d of %d: %s, %s: %s verdicts agree\n", n+1, len(pairs), c.scenario, c.subject, c.agreement())
		}
	}
	if unknown := p.print(pairs); unknown > 0 {
		fmt.Fprintf(p.Console.Out, "\n%d disagreements are not known: correct the simulator, or explain them in sim/parity/known.json.\n", unknown)
		return invariant.OutcomeFail, nil
	}
	_, err = fmt.Fprintf(p.Console.Out, "\nEvery disagreement is known.\n")
	return invariant.OutcomePass, err
}

// pairs checks all runs before any run begins.
func (p *Parity) pairs() (pairs []*pair, err error) {
	names := p.Names
	if len(names) == 0 {
		for _, s := range scenarios.All() {
			if s.Limits.Allows(scenario.BackendLocal) && s.Limits.Allows(scenario.BackendSim) {
				names = append(names, s.Name)
			}
		}
	}
	if len(p.Subjects) == 0 {
		return nil, run.Usagef("--subject names none: there are %s", strings.Join(scenario.Subjects, ", "))
	}
	for _, name := range names {
		for _, subject := range p.Subjects {
			if s, err := scenarios.Find(name); err == nil && len(p.Names) == 0 && !s.Limits.AllowsSubject(subject) {
				continue
			}
			if slices.ContainsFunc(pairs, func(c *pair) bool { return c.scenario == name && c.subject == subject }) {
				return nil, run.Usagef("%s on %s is named twice", name, subject)
			}
			c := &pair{scenario: name, subject: subject}
			for _, backend := range parityBackends {
				spec := p.Spec
				spec.Scenario, spec.Subject, spec.Backend = name, subject, backend
				if backend == scenario.BackendSim { // the simulator starts no programs
					spec.Etcd, spec.Binaries, spec.APIServerFlags, spec.RuntimeConfig = "", nil, nil, nil
				}
				plan, err := spec.Plan()
				if err != nil {
					return nil, err
				}
				c.plans = append(c.plans, plan)
			}
			pairs = append(pairs, c)
		}
	}
	return pairs, nil
}

// name is the name of the directory of a run.
func (c *pair) name(i int) string { return c.scenario + "-" + c.subject + "-" + parityBackends[i] }

// readLocal reads the existing real runs, and returns the plans of the missing ones. It judges the
// runs again, because invariants may have changed.
func (p *Parity) readLocal(pairs []*pair) (missing []*run.Plan, err error) {
	if p.Local != "" {
		if _, err := os.ReadDir(p.Local); err != nil { // a mistyped name must not cause half an hour of real runs
			return nil, fmt.Errorf("take runs from --local %s: %w", p.Local, err)
		}
	}
	for _, c := range pairs {
		dir := run.Dir(filepath.Join(p.Local, c.name(0)))
		if _, err := os.Stat(dir.File(reports.JSONFile)); p.Local == "" || errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, c.plans[0])
			continue
		}
		if _, err := reports.Read(dir.File(reports.JSONFile)); err != nil {
			return nil, err
		}
		if _, err := dir.Judge(run.Judging{}, run.Console{Out: io.Discard, Progress: io.Discard}); err != nil {
			return nil, err
		}
		if c.reports[0], err = reports.Read(dir.File(reports.JSONFile)); err != nil {
			return nil, err
		}
	}
	if p.Local != "" && len(missing) == len(pairs) {
		return nil, fmt.Errorf("take runs from --local %s: none of those that are to be compared is there, such as %s; without --local they are carried out",
			p.Local, pairs[0].name(0))
	}
	return missing, nil
}

// finish stores the result of the run on the i-th backend, and compares both after the second. A
// run that ended early because a server crashed has a report. It counts, unless it was interrupted.
func (c *pair) finish(i int, f Finished, interrupted bool) (err error) {
	switch {
	case f.Report != nil && (f.Problem == "" || !interrupted):
		c.reports[i] = *f.Report
	case c.reports[i].Kind == "":
		return fmt.Errorf("%s, %s, on %s: %s", c.scenario, c.subject, parityBackends[i], f.Problem)
	}
	if i == 1 {
		c.disagreements, err = parity.Compare(c.reports[0], c.reports[1])
	}
	return err
}

func (c *pair) agreement() string {
	n := len(c.reports[0].Invariants)
	return fmt.Sprintf("%d of %d", n-len(c.disagreements), n)
}

// print prints the table and its details. It returns the number of unknown disagreements.
func (p *Parity) print(pairs []*pair) (unknown int) {
	out := p.Console.Out
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "scenario\tsubject\tagree\tdisagree")
	var list strings.Builder
	for _, c := range pairs {
		var differing []string
		for _, d := range c.disagreements {
			differing = append(differing, fmt.Sprintf("%s (%s, sim %s)", d.Invariant, d.Local, d.Sim))
			why, ok := parity.Explain(d)
			if !ok {
				unknown++
				why = "NOT KNOWN"
			}
			fmt.Fprintf(&list, "\n%s\n  %s\n", d, why)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.scenario, c.subject, c.agreement(), strings.Join(differing, ", "))
		if p.Causes {
			both, onlyLocal, onlySim := parity.Causes(c.reports[0], c.reports[1])
			fmt.Fprintf(&list, "\n%s, %s: %d kinds of violations on both\n", c.scenario, c.subject, len(both))
			for _, cause := range onlyLocal {
				fmt.Fprintf(&list, "  only on real processes: %s\n", cause)
			}
			for _, cause := range onlySim {
				fmt.Fprintf(&list, "  only in the simulator:  %s\n", cause)
			}
		}
	}
	_ = table.Flush() // it is not an error if standard output is closed
	fmt.Fprint(out, list.String())
	return unknown
}
