package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/replay"
	"github.com/skewproof/skewproof/sim/search"
)

func join(words []string) string { return strings.Join(words, ",") }

// confirmAll repeats, shrinks and models the NEW violations that were not tried yet. One schedule
// may show several kinds, so those of one schedule share its repetitions.
func (c *Campaign) confirmAll(ctx context.Context) {
	for i, f := range c.fresh {
		if f.tried || i >= mostConfirmed || ctx.Err() != nil {
			continue
		}
		var all []*newFinding // of the schedule of f, which is the first of them
		for _, other := range c.fresh[i:min(len(c.fresh), mostConfirmed)] {
			if !other.tried && other.schedule.seed == f.schedule.seed {
				other.tried = true
				c.Progress("NEW, seed %d: %s", other.schedule.seed, other.Sentence)
				all = append(all, other)
			}
		}
		c.repeat(ctx, all)
		for _, one := range all {
			if one.real.Confirmed > 0 && !one.shrunk {
				c.shrink(ctx, one, all)
			}
		}
	}
}

// repeat carries out the schedule of findings alone, on a new cluster each time. Repetitions of an
// earlier part count.
func (c *Campaign) repeat(ctx context.Context, all []*newFinding) {
	s := all[0].schedule
	for n := all[0].real.Repeated; n < c.Repeats; n++ {
		kinds, err := c.onNewCluster(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.Progress("repeat the schedule of seed %d: %v", s.seed, err)
			return
		}
		seen := 0
		for _, f := range all {
			f.real.Repeated++
			if f.in(kinds) {
				f.real.Confirmed++
				seen++
			}
		}
		c.Progress("seed %d repeated on a new cluster, %d of %d: %d of %d kinds seen", s.seed, n+1, c.Repeats, seen, len(all))
	}
}

// in reports whether violations contain the kind of a finding.
func (f *newFinding) in(violations []search.Violation) bool {
	return slices.ContainsFunc(violations, func(v search.Violation) bool { return v.ViolationKind == f.ViolationKind })
}

// onNewCluster carries out a schedule on a new cluster, and returns its violations.
func (c *Campaign) onNewCluster(ctx context.Context, s schedule) ([]search.Violation, error) {
	began := time.Now()
	cluster, err := c.open(ctx, "repeat")
	if err != nil {
		return nil, err
	}
	violations, err := c.shown(ctx, cluster, s)
	if err = errors.Join(err, cluster.Close()); err != nil {
		return nil, err
	}
	c.alone += time.Since(began)
	c.real.AloneRuns++
	return violations, cluster.Discard()
}

// shown carries out a schedule on a cluster, and returns its violations.
func (c *Campaign) shown(ctx context.Context, on Cluster, s schedule) ([]search.Violation, error) {
	j, result, err := c.judge(ctx, on, s, c.unused("again"))
	if err == nil && len(result.Left) > 0 {
		err = fmt.Errorf("the cluster could not be used again: %s", strings.Join(result.Left, "; "))
	}
	if err != nil {
		return nil, err
	}
	return j.violations, os.RemoveAll(string(j.dir))
}

// shrink looks for a smaller schedule of a finding, on clusters that are kept. A smaller one counts
// only if a new cluster shows the finding with it too. It counts for each other finding of the same
// schedule that this cluster shows.
func (c *Campaign) shrink(ctx context.Context, f *newFinding, all []*newFinding) {
	if c.ShrinkRuns <= 0 {
		return
	}
	var cluster Cluster
	end := func() {
		if cluster != nil {
			_ = errors.Join(cluster.Close(), cluster.Discard())
			cluster = nil
		}
	}
	with := func(steps sim.Case) schedule {
		s := f.schedule
		s.plan = replay.Enclosed(s.plan, steps.Steps)
		return s
	}
	runs := 0
	smallest := search.Smaller(ctx, sim.Case{Servers: f.schedule.plan.Servers, Steps: replay.Enclosing(f.schedule.plan)}, c.ShrinkRuns,
		func(candidate sim.Case) bool {
			runs++
			if cluster == nil {
				var err error
				if cluster, err = c.open(ctx, "shrink"); err != nil {
					cluster = nil
					return false
				}
			}
			s := with(candidate)
			violations, err := c.shown(ctx, cluster, s)
			if err != nil {
				end()
				return false
			}
			seen := f.in(violations)
			c.Progress("seed %d, run %d to shrink it: %d steps, seen: %t", f.schedule.seed, runs, len(candidate.Steps), seen)
			return seen
		})
	end()
	s := with(smallest)
	if ctx.Err() != nil || len(s.plan.Steps) >= len(f.schedule.plan.Steps) {
		f.shrunk = ctx.Err() == nil
		return
	}
	violations, err := c.onNewCluster(ctx, s)
	if err != nil || !f.in(violations) {
		return
	}
	for _, one := range all {
		if one.real.Confirmed > 0 && !one.shrunk && one.in(violations) {
			one.schedule, one.shrunk = s, true
		}
	}
}
