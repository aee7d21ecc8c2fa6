package campaign

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
)

// CheckEarlier returns an error that says why a campaign cannot be continued.
func CheckEarlier(c *reports.Campaign) error {
	switch {
	case c.Real == nil:
		return fmt.Errorf("it is a search in the simulator; only a campaign on real servers can be continued")
	case c.Real.NextSeed <= c.FirstSeed && c.Schedules > 0:
		return fmt.Errorf("its next seed is %d and its first seed is %d: the file was altered", c.Real.NextSeed, c.FirstSeed)
	}
	return nil
}

// resume takes over what an earlier part of the campaign has counted.
func (c *Campaign) resume(e *reports.Campaign) {
	r := e.Real
	c.chooser.next = max(r.NextSeed, c.chooser.next)
	c.tally = search.TallyOf(e)
	c.earlier, c.done = e.Schedules, e.Schedules
	c.took, c.resets, c.alone = total(r.ScheduleSeconds, e.Schedules), total(r.ResetSeconds, e.Schedules), total(r.AloneSeconds, r.AloneRuns)
	c.real = *r
	c.growth, c.real.Sessions = slices.Clone(e.Growth), slices.Clone(r.Sessions)
	for _, at := range r.Coverage {
		c.reached[cell{situation{at.Fault, at.Transition}, at.Class}] = at.Requests
	}
	for _, f := range e.Findings {
		if f.Finding != 0 {
			c.known[f.Finding] += f.Schedules
			continue
		}
		c.seen[f.ViolationKind] = true
		if f.Real == nil || f.Real.Repeated >= c.Repeats {
			continue
		}
		if left, err := c.unconfirmed(f); err != nil {
			c.Progress("seed %d is not repeated: %v", f.Seed, err)
		} else {
			c.fresh = append(c.fresh, left)
		}
	}
}

// unconfirmed is a NEW violation of an earlier part that ended before it had repeated it. An error
// says why it cannot be repeated.
func (c *Campaign) unconfirmed(f reports.CampaignFinding) (*newFinding, error) {
	repro, err := reproOf(f)
	if err != nil {
		return nil, err
	}
	s, err := c.chooser.of(f.Seed)
	if err != nil {
		return nil, err
	}
	shown := sim.CaseOf(s.plan, c.Spec.QPS)
	if story, _ := search.Story(&shown); !slices.Equal(story, f.Story) {
		return nil, fmt.Errorf("this version of skewproof makes another schedule from the seed; 'skewproof replay %s --backend local' repeats the old one", f.File)
	}
	return &newFinding{
		Violation: search.Violation{ViolationKind: f.ViolationKind, Signature: repro.Signature, Sentence: f.Sentence, Cause: repro.Cause},
		schedule:  s, real: *f.Real, file: f.File, earlier: true,
	}, nil
}

// total is the inverse of mean.
func total(seconds float64, n uint64) time.Duration {
	return time.Duration(seconds * float64(n) * float64(time.Second))
}

// unused returns a name that nothing in the directory of the campaign has: name and a number.
func (c *Campaign) unused(name string) string {
	for {
		c.opened++
		full := fmt.Sprintf("%s-%d", name, c.opened)
		if _, err := os.Lstat(filepath.Join(c.Out, full)); os.IsNotExist(err) {
			return full
		}
	}
}
