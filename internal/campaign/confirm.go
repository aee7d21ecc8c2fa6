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

// confirmAll repeats, shrinks and models the NEW violations that were not tried yet.
func (c *Campaign) confirmAll(ctx context.Context) {
	for i, f := range c.fresh {
		if f.tried || i >= mostConfirmed || ctx.Err() != nil {
			continue
		}
		f.tried = true
		c.Progress("NEW, seed %d: %s", f.schedule.seed, f.Sentence)
		c.repeat(ctx, f)
		if f.real.Confirmed > 0 {
			c.shrink(ctx, f)
		}
	}
}

// repeat carries out the schedule of a finding alone, on a new cluster each time.
func (c *Campaign) repeat(ctx context.Context, f *newFinding) {
	for range c.Repeats {
		seen, err := c.onNewCluster(ctx, f, f.schedule)
		if err != nil {
			c.Progress("repeat the schedule of seed %d: %v", f.schedule.seed, err)
			return
		}
		f.real.Repeated++
		if seen {
			f.real.Confirmed++
		}
		c.Progress("seed %d repeated on a new cluster: seen in %d of %d", f.schedule.seed, f.real.Confirmed, f.real.Repeated)
	}
}

// onNewCluster carries out a schedule on a new cluster, and reports whether it shows a finding.
func (c *Campaign) onNewCluster(ctx context.Context, f *newFinding, s schedule) (seen bool, err error) {
	began := time.Now()
	cluster, err := c.open(ctx, "repeat")
	if err != nil {
		return false, err
	}
	seen, err = c.shows(ctx, cluster, f, s)
	if err = errors.Join(err, cluster.Close()); err != nil {
		return false, err
	}
	c.alone += time.Since(began)
	c.aloneRuns++
	return seen, cluster.Discard()
}

// shows carries out a schedule on a cluster, and reports whether it shows a finding.
func (c *Campaign) shows(ctx context.Context, on Cluster, f *newFinding, s schedule) (bool, error) {
	j, result, err := c.judge(ctx, on, s, c.unused("again"))
	if err == nil && len(result.Left) > 0 {
		err = fmt.Errorf("the cluster could not be used again: %s", strings.Join(result.Left, "; "))
	}
	if err != nil {
		return false, err
	}
	seen := slices.ContainsFunc(j.violations, func(v search.Violation) bool { return v.ViolationKind == f.ViolationKind })
	return seen, os.RemoveAll(string(j.dir))
}

// shrink looks for a smaller schedule, on clusters that are kept. A smaller one counts only if a
// new cluster shows the finding with it too.
func (c *Campaign) shrink(ctx context.Context, f *newFinding) {
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
			seen, err := c.shows(ctx, cluster, f, s)
			if err != nil {
				end()
				return false
			}
			c.Progress("seed %d, run %d to shrink it: %d steps, seen: %t", f.schedule.seed, runs, len(candidate.Steps), seen)
			return seen
		})
	end()
	s := with(smallest)
	if ctx.Err() != nil || len(s.plan.Steps) >= len(f.schedule.plan.Steps) {
		f.shrunk = ctx.Err() == nil
		return
	}
	if seen, err := c.onNewCluster(ctx, f, s); err == nil && seen {
		f.schedule, f.shrunk = s, true
	}
}
