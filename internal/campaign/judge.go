package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// judgement is a schedule that was carried out and judged.
type judgement struct {
	dir        run.Dir
	facts      *invariant.Facts
	verdicts   []invariant.Verdict
	violations []search.Violation
}

// judge carries out a schedule on a cluster and judges it. Its run is in a directory of that name.
func (c *Campaign) judge(ctx context.Context, on Cluster, s schedule, name string) (j judgement, result run.ScheduleResult, err error) {
	plan, err := c.planOf(s)
	if err != nil {
		return j, result, err
	}
	if j.dir, err = run.NewDir(filepath.Join(c.Out, name), ""); err != nil {
		return j, result, err
	}
	result, err = on.CarryOut(ctx, plan, j.dir)
	if err == nil && result.Error != "" {
		err = errors.New(result.Error)
	}
	if err != nil || len(result.Left) > 0 {
		return j, result, errors.Join(err, os.RemoveAll(string(j.dir)))
	}
	h, err := history.ReadFile(j.dir.History())
	if err != nil {
		return j, result, err
	}
	j.facts = invariant.NewFacts(h)
	j.verdicts = j.facts.Judge()
	j.violations = search.Violations(c.Findings, j.verdicts)
	return j, result, nil
}

// count counts a schedule that was carried out.
func (c *Campaign) count(s schedule, j judgement, result run.ScheduleResult) {
	h := j.facts.History()
	c.reached.Add(j.facts, s.plan)
	passed := uint64(0)
	for _, handled := range j.facts.Handled() {
		if handled.Way == invariant.WayPassedOn {
			passed++
		}
	}
	c.done++
	c.real.Operations += uint64(len(h.Operations))
	c.real.PassedOn += passed
	c.took += result.Took
	c.resets += result.Reset
	if slices.ContainsFunc(j.verdicts, func(v invariant.Verdict) bool { return v.Overloaded > 0 }) {
		c.real.Overloaded++
	}
	if controllersWorked(h) {
		c.real.ControllersWorked++
	}
	c.tally.AddReal(s.seed, passed > 0, j.verdicts, j.violations)
	c.growth = append(c.growth, reports.GrowthPoint{Schedules: c.done, Kinds: len(c.known) + len(c.seen), Cells: len(c.reached)})
	of := ""
	if c.Seeds > 0 {
		of = fmt.Sprintf(" of %d", c.earlier+c.Seeds)
	}
	c.Progress("%d%s schedules, seed %d took %.0f s; %d of %d cells reached; violations of %d known kinds, %d NEW; %d clusters", c.done, of,
		s.seed,
		result.Took.Seconds(), len(c.reached), axes().Cells(), len(c.known), len(c.seen), len(c.real.Sessions)+1)
}
