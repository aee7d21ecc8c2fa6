package search

import (
	"cmp"
	"maps"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
)

// Tally has the counted results of schedules: of a worker, of all workers, or of schedules on real
// servers.
type Tally struct {
	schedules  uint64
	reached    []reports.Reach          // by state
	invariants []reports.InvariantCount // in the order of the catalogue
	found      map[reports.ViolationKind]*reports.CampaignFinding
	troubles   map[string]*reports.Trouble
	checks     reports.SelfChecks
}

// NewTally returns an empty Tally.
func NewTally(spec Spec) *Tally {
	n := &Tally{found: map[reports.ViolationKind]*reports.CampaignFinding{}, troubles: map[string]*reports.Trouble{}}
	impossible := spec.impossible()
	for _, state := range sim.States() {
		n.reached = append(n.reached, reports.Reach{State: state.String(), Impossible: impossible[state]})
	}
	for _, inv := range invariant.All() {
		count := reports.InvariantCount{Name: inv.Name, Grade: inv.Grade, Sentence: inv.Sentence}
		for _, kind := range reports.RequestKinds {
			count.Requests = append(count.Requests, reports.RequestCount{Asked: kind})
		}
		n.invariants = append(n.invariants, count)
	}
	return n
}

// run counts a schedule that was run.
func (n *Tally) run(r *sim.Result) {
	n.schedules++
	for state := range n.reached {
		if r.Reached.Has(sim.State(state)) {
			n.reached[state].Schedules++
		}
	}
}

// growth says how many kinds the first schedules found: the first 1, 2, 4, 8, … of all. The counts
// and the findings of the campaign are complete.
func growth(c *reports.Campaign) (points []reports.GrowthPoint) {
	for n := uint64(1); n < 2*c.Schedules; n *= 2 {
		point := reports.GrowthPoint{Schedules: min(n, c.Schedules)}
		for _, f := range c.Findings {
			if f.Seed-c.FirstSeed < n || n >= c.Schedules {
				point.Kinds++
			}
		}
		points = append(points, point)
	}
	return points
}

// AddReal counts a schedule on real servers. passedOn says whether a server forwarded a request to
// a peer. verdicts are in the order of the catalogue.
func (n *Tally) AddReal(seed uint64, passedOn bool, verdicts []invariant.Verdict, found []Violation) {
	n.schedules++
	if passedOn {
		n.reached[sim.ReachedProxied].Schedules++
	}
	n.judge(seed, verdicts, found)
}

// judge counts the invariants that a schedule tested and violated, and its violations. verdicts are
// in the order of the catalogue.
func (n *Tally) judge(seed uint64, verdicts []invariant.Verdict, violations []Violation) {
	for i := range n.invariants {
		count := &n.invariants[i]
		if verdicts[i].Checked > 0 || verdicts[i].Violations > 0 {
			count.Exercised++
		}
		if verdicts[i].Outcome != invariant.OutcomeFail {
			continue
		}
		count.Violated++
		for j, kind := range reports.RequestKinds {
			if slices.ContainsFunc(violations, func(v Violation) bool {
				return v.Signature.Invariant == count.Name &&
					requestKind(v.Signature) == kind
			}) {
				count.Requests[j].Violated++
			}
		}
	}
	seen := map[reports.ViolationKind]bool{} // a finding violates several invariants; core ones come first
	for _, v := range violations {
		if n.found[v.ViolationKind] == nil && len(n.found) >= mostKinds {
			n.Trouble("there are more kinds of violations than are told apart", seed)
			continue
		}
		f := reports.CampaignFinding{ViolationKind: v.ViolationKind, Invariant: v.Signature.Invariant, Schedules: 1, Seed: seed,
			Sentence: v.Sentence}
		for _, i := range n.invariants {
			if i.Name == f.Invariant {
				f.Grade = i.Grade
			}
		}
		if !seen[v.ViolationKind] {
			n.addFinding(f)
		}
		seen[v.ViolationKind] = true
	}
}

// mostKinds is the maximum number of signatures, and of troubles, that are counted separately. It
// limits the memory for them.
const mostKinds = 1000

// Trouble counts a schedule that could not be run.
func (n *Tally) Trouble(text string, seed uint64) {
	if n.troubles[text] == nil && len(n.troubles) >= mostKinds {
		text = "others"
	}
	n.addTrouble(reports.Trouble{Sentence: text, Schedules: 1, Seed: seed})
}

// repeated counts a schedule that was run twice.
func (n *Tally) repeated(seed uint64, differs bool) {
	n.checks.Repeated++
	if differs {
		n.checks.Differed++
		n.checks.FirstDiffered = earlier(n.checks.FirstDiffered, seed)
	}
}

// earlier returns the smaller of two seeds; 0 means that there is no seed.
func earlier(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// add adds the counts of another worker.
func (n *Tally) add(o *Tally) {
	n.schedules += o.schedules
	for i, r := range o.reached {
		n.reached[i].Schedules += r.Schedules
	}
	for i, count := range o.invariants {
		mine := &n.invariants[i]
		mine.Exercised, mine.Violated = mine.Exercised+count.Exercised, mine.Violated+count.Violated
		for j, r := range count.Requests {
			mine.Requests[j].Violated += r.Violated
		}
	}
	c, d := &n.checks, o.checks
	c.Repeated, c.Differed, c.FirstDiffered = c.Repeated+d.Repeated, c.Differed+d.Differed, earlier(c.FirstDiffered, d.FirstDiffered)
	for _, f := range o.found { // the order does not matter
		n.addFinding(*f)
	}
	for _, x := range o.troubles { // the order does not matter
		n.addTrouble(*x)
	}
}

// addFinding adds the schedules of a finding, and keeps the example with the smaller seed.
func (n *Tally) addFinding(f reports.CampaignFinding) {
	mine := n.found[f.ViolationKind]
	if mine == nil {
		n.found[f.ViolationKind] = &f
		return
	}
	schedules := mine.Schedules + f.Schedules
	if f.Seed < mine.Seed {
		*mine = f
	}
	mine.Schedules = schedules
}

func (n *Tally) addTrouble(x reports.Trouble) {
	mine := n.troubles[x.Sentence]
	if mine == nil {
		n.troubles[x.Sentence] = &x
		return
	}
	mine.Schedules, mine.Seed = mine.Schedules+x.Schedules, min(mine.Seed, x.Seed)
}

// Fill writes the counts into a campaign, which already has its parts.
func (n *Tally) Fill(c *reports.Campaign) {
	c.Schedules = n.schedules
	for _, part := range c.Parts {
		c.ElapsedSeconds += part.ElapsedSeconds
	}
	if c.ElapsedSeconds > 0 {
		c.SchedulesPerSecond = float64(c.Schedules) / c.ElapsedSeconds
	}
	c.PassedOn, c.Checks = n.reached[sim.ReachedProxied].Schedules, n.checks
	c.Reached, c.Invariants = n.reached, n.invariants
	c.Findings = make([]reports.CampaignFinding, 0, len(n.found))
	for _, f := range n.found { // the order does not matter
		c.Findings = append(c.Findings, *f)
	}
	slices.SortFunc(c.Findings, func(a, b reports.CampaignFinding) int { return a.Compare(b) })
	c.Growth = growth(c)
	c.Troubles = nil
	for _, text := range slices.Sorted(maps.Keys(n.troubles)) {
		c.Troubles = append(c.Troubles, *n.troubles[text])
	}
	slices.SortStableFunc(c.Troubles, func(a, b reports.Trouble) int { return cmp.Compare(a.Seed, b.Seed) })
}

// TallyOf returns the tally with which a campaign was filled.
func TallyOf(c *reports.Campaign) *Tally {
	n := NewTally(Spec(c.Spec))
	n.add(&Tally{schedules: c.Schedules, reached: c.Reached, invariants: c.Invariants, checks: c.Checks})
	for _, f := range c.Findings {
		n.addFinding(f)
	}
	for _, x := range c.Troubles {
		n.addTrouble(x)
	}
	n.reached[sim.ReachedProxied].Schedules = c.PassedOn // a campaign on real servers has only this state
	return n
}
