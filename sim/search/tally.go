package search

import (
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
)

// Violations returns the violations of a run, each kind once. known explains some of them.
func Violations(known findings.Catalogue, verdicts []invariant.Verdict) []Violation {
	return violations(known, verdicts)
}

// Tally counts the results of schedules that no [Search] has run: those on real servers.
type Tally struct{ n *counts }

// NewTally returns an empty Tally.
func NewTally(spec Spec) Tally { return Tally{newCounts(spec)} }

// Add counts a schedule. passedOn says whether a server forwarded a request to a peer. verdicts are
// in the order of the catalogue.
func (t Tally) Add(seed uint64, passedOn bool, verdicts []invariant.Verdict, found []Violation) {
	t.n.schedules++
	if passedOn {
		t.n.reached[sim.ReachedProxied].Schedules++
	}
	t.n.judge(seed, verdicts, found)
}

// TallyOf returns the tally that filled a campaign on real servers.
func TallyOf(c *reports.Campaign) Tally {
	n := countsOf(c)
	n.reached[sim.ReachedProxied].Schedules = c.PassedOn
	return Tally{n}
}

// Trouble counts a schedule that could not be carried out.
func (t Tally) Trouble(why string, seed uint64) { t.n.trouble(why, seed) }

// Fill writes the counts into a campaign on real servers, which already has its shards: its parts,
// which ran one after the other. Real servers show neither the states of the simulator nor traces.
func (t Tally) Fill(c *reports.Campaign) {
	t.n.fill(c)
	c.Reached = nil
	c.ElapsedSeconds, c.SchedulesPerSecond = 0, 0
	for _, part := range c.Shards {
		c.ElapsedSeconds += part.ElapsedSeconds
	}
	if c.ElapsedSeconds > 0 {
		c.SchedulesPerSecond = float64(c.Schedules) / c.ElapsedSeconds
	}
}

// StoryOf describes a case in lines of text, and counts the steps that disturb the control plane.
func StoryOf(c *sim.Case) (lines []string, disturbances int) { return story(c) }
