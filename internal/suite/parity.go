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
	"time"

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
	reports.ParityPair
	plans   []*run.Plan          // local, sim
	reports [2]reports.RunReport // local, sim
	earlier bool                 // the real run is one in Parity.Local
}

// parityBackends are the backends to compare.
var parityBackends = []string{scenario.BackendLocal, scenario.BackendSim}

// Run compares the verdicts, and shows and saves the table. If there is an error, the table has the
// pairs that were compared until then.
func (p *Parity) Run(ctx context.Context) (reports.Parity, error) {
	pairs, err := p.pairs()
	if err != nil {
		return reports.Parity{}, err
	}
	missing, err := p.readLocal(pairs)
	if err != nil {
		return reports.Parity{}, err
	}
	if err := p.Prepare(ctx, "parity", missing); err != nil {
		return reports.Parity{}, err
	}
	defer func() { _ = os.Remove(p.Out) }() // this removes the directory only if nothing was run
	began := time.Now()
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
	var ended error
	compared := 0
	for i, f := range p.carryOut(ctx, tasks) {
		c := pairs[i/2]
		if ended = c.finish(i%2, f); ended != nil {
			c.NotCompared = ended.Error()
			break
		}
		if i%2 == 1 {
			compared++
			p.describe(c)
			fmt.Fprintf(p.Console.Progress, "%d of %d: %s, %s: %s verdicts agree\n", compared, len(pairs), c.Scenario, c.Subject, c.Agreement())
		}
	}
	if compared == 0 {
		return reports.Parity{}, ended
	}
	var all []reports.ParityPair
	for _, c := range pairs {
		all = append(all, c.ParityPair)
	}
	table := reports.NewParity(reports.ParityMetadata{
		Made:   reports.NewMade(began, run.Version()),
		Tested: reports.Tested{Label: p.Spec.Label, Binaries: p.Binaries},
	}, all)
	table.Reproduce, table.Environment = p.Reproduce, run.Machine()
	return table, errors.Join(ended, RenderParity(table, p.Out, p.Console))
}

// RenderParity writes a comparison into dir and shows it.
func RenderParity(table reports.Parity, dir string, c run.Console) error {
	return c.Show(dir, reports.SaveParity(dir, table), func(shown reports.SummaryOptions) error {
		return reports.WriteParityText(c.Out, table, shown)
	})
}

// describe says where the reports of a pair are, and which kinds of violations only one of them
// shows.
func (p *Parity) describe(c *pair) {
	if c.LocalDirectory = c.name(0); c.earlier {
		c.LocalDirectory = relative(p.Out, filepath.Join(p.Local, c.name(0)))
	}
	c.SimDirectory = c.name(1)
	if p.Causes {
		both, onlyLocal, onlySim := parity.Causes(c.reports[0], c.reports[1])
		c.Causes = &reports.ParityCauses{Both: len(both), OnlyLocal: onlyLocal, OnlySim: onlySim}
	}
}

// relative is the path of a directory, seen from another one. It is empty if there is no such path.
func relative(from, to string) string {
	from, err := filepath.Abs(from)
	if err == nil {
		to, err = filepath.Abs(to)
	}
	if err == nil {
		to, err = filepath.Rel(from, to)
	}
	if err != nil {
		return ""
	}
	return to
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
			if slices.ContainsFunc(pairs, func(c *pair) bool { return c.Scenario == name && c.Subject == subject }) {
				return nil, run.Usagef("%s on %s is named twice", name, subject)
			}
			c := &pair{ParityPair: reports.ParityPair{Scenario: name, Subject: subject,
				NotCompared: "not run: the comparison was ended before its turn came"}}
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
			c.From, c.To = c.plans[0].Spec.From, c.plans[0].Spec.To
			pairs = append(pairs, c)
		}
	}
	return pairs, nil
}

// name is the name of the directory of a run.
func (c *pair) name(i int) string { return c.Scenario + "-" + c.Subject + "-" + parityBackends[i] }

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
		c.earlier = true
	}
	if p.Local != "" && len(missing) == len(pairs) {
		return nil, fmt.Errorf("take runs from --local %s: none of those that are to be compared is there, such as %s; without --local they are carried out",
			p.Local, pairs[0].name(0))
	}
	return missing, nil
}

// finish stores the result of the run on the i-th backend, and compares both after the second. A
// run that ended early because a server crashed has a report. It counts, unless it was stopped.
func (c *pair) finish(i int, f Finished) error {
	switch {
	case f.Report != nil && !f.Stopped:
		c.reports[i] = *f.Report
	case c.reports[i].Kind == "":
		return fmt.Errorf("%s, %s, on %s: %s", c.Scenario, c.Subject, parityBackends[i], f.Problem)
	}
	if i == 0 {
		return nil
	}
	differing, err := parity.Compare(c.reports[0], c.reports[1])
	if err != nil {
		return err
	}
	var all []reports.ParityDisagreement
	for _, d := range differing {
		why, _ := parity.Explain(d)
		all = append(all, reports.ParityDisagreement{Disagreement: d, Why: why})
	}
	c.SetVerdicts(c.reports[0], c.reports[1], all)
	return nil
}
