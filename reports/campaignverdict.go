package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// CampaignVerdict is the verdict on a campaign.
type CampaignVerdict struct {
	// Outcome is "fail", "inconclusive", "known" or "pass": see [Campaign.Standing].
	Outcome invariant.Outcome `json:"outcome"`
	// Sentence says why, in one sentence.
	Sentence string `json:"sentence"`
}

// FewestStates is how many of the interesting states a random search must reach to pass.
const FewestStates = 8

// Conclude computes the verdict from all other fields.
func (c *Campaign) Conclude() { c.Verdict = c.conclusion() }

func (c *Campaign) conclusion() CampaignVerdict {
	var violated []string
	var explained []int
	kinds, news := 0, 0
	for _, f := range c.Findings {
		if c.Decides(f.Grade) {
			kinds++
			if f.Finding == 0 {
				news++
			}
			violated = appendNew(violated, f.Invariant)
			explained = append(explained, f.Finding)
		}
	}
	s := c.Standing()
	var told []string
	switch {
	case kinds > 0:
		slices.Sort(explained)
		explained = slices.DeleteFunc(slices.Compact(explained), func(n int) bool { return n == 0 })
		sentence := fmt.Sprintf("%s violated, in %d different ways", strings.Join(violated, ", "), kinds)
		named := findingsNamed(explained)
		switch {
		case s.New && named != "":
			sentence += fmt.Sprintf(" (%s; %d NEW)", named, news)
		case s.New:
			sentence += fmt.Sprintf(" (%d NEW)", news)
		default:
			sentence += " (" + named + "). Nothing is new"
		}
		told = append(told, sentence)
	case !s.Undecided:
		told = append(told, fmt.Sprintf("no violation in %d schedules", c.Schedules))
	}
	if s.Undecided {
		told = append(told, c.undecided())
	}
	return CampaignVerdict{s.Outcome(), strings.Join(told, "; ")}
}

// undecided says why the search proves nothing. It is "" if that is not so.
func (c *Campaign) undecided() string {
	states := c.States()
	switch {
	case c.Checks.Differed > 0:
		return fmt.Sprintf("%d of %d schedules that were run twice gave two traces: the simulator cannot be trusted", c.Checks.Differed,
			c.Checks.Repeated)
	case len(c.Troubles) > 0:
		return "some schedules could not be carried out: " + c.Troubles[0].Sentence
	case c.Schedules == 0:
		return "nothing was run"
	case c.PassedOn == 0:
		return fmt.Sprintf("in %d schedules no request was passed on to a peer", c.Schedules)
	case c.Method == MethodRandom && states < FewestStates:
		return fmt.Sprintf("only %d of the interesting states were reached in %d schedules; want at least %d", states, c.Schedules, FewestStates)
	case !c.Complete:
		return fmt.Sprintf("it was ended after %d schedules", c.Schedules)
	}
	return ""
}

// Decides reports whether an invariant of that grade counts towards the verdict.
func (c *Campaign) Decides(g invariant.Grade) bool { return g == invariant.GradeCore || c.Strict }

// States is how many of the interesting states were reached.
func (c *Campaign) States() int { return c.states(func(r Reach) bool { return r.Schedules > 0 }) }

// PossibleStates is how many interesting states can be reached under the policy.
func (c *Campaign) PossibleStates() int {
	return c.states(func(r Reach) bool { return r.Impossible == "" })
}

func (c *Campaign) states(of func(Reach) bool) (n int) {
	for _, r := range c.Reached {
		if of(r) {
			n++
		}
	}
	return n
}
