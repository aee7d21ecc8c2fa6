package campaign

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/search"
)

// CheckEarlier returns an error that says why skewproof of a version cannot continue a campaign.
// Another version may make other schedules from the same seeds, and judge them by other invariants
// and findings.
func CheckEarlier(c *reports.Campaign, version string) error {
	switch {
	case c.Real == nil:
		return fmt.Errorf("it is a search in the simulator; only a campaign on real servers can be continued")
	case c.SkewproofVersion != version:
		return fmt.Errorf("it is of skewproof %s, and this is %s; begin another campaign, with --first %d", c.SkewproofVersion, version,
			c.Real.NextSeed)
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
	var repro search.Repro
	if err := json.Unmarshal(f.Repro, &repro); err != nil {
		return nil, fmt.Errorf("read the repro file of seed %d from %s: %w", f.Seed, reports.CampaignJSON, err)
	}
	s, err := c.chooser.of(f.Seed)
	if err != nil {
		return nil, err
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
