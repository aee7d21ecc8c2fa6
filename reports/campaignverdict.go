package reports

import (
	"fmt"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// CampaignVerdict is the verdict on a campaign.
type CampaignVerdict struct {
	// Outcome is "pass", "fail" or "inconclusive".
	Outcome invariant.Outcome `json:"outcome"`
	// Sentence says why, in one sentence.
	Sentence string `json:"sentence"`
}

// FewestStates is how many of the interesting states a random search must reach to pass.
const FewestStates = 8

// Conclude computes the verdict from all other fields.
func (c *Campaign) Conclude() { c.Verdict = c.conclusion() }

func (c *Campaign) conclusion() CampaignVerdict {
	inconclusive := func(format string, args ...any) CampaignVerdict {
		return CampaignVerdict{invariant.OutcomeInconclusive, fmt.Sprintf(format, args...)}
	}
	var violated []string
	core := 0
	for _, f := range c.Findings {
		if c.Decides(f.Grade) {
			core++
			violated = appendNew(violated, f.Invariant)
		}
	}
	states := c.States()
	switch {
	case core > 0:
		return CampaignVerdict{invariant.OutcomeFail, fmt.Sprintf("%s violated, in %d different ways", strings.Join(violated, ", "), core)}
	case c.Checks.Differed > 0:
		return inconclusive("%d of %d schedules that were run twice gave two traces: the simulator cannot be trusted", c.Checks.Differed,
			c.Checks.Repeated)
	case c.Checks.Wrong > 0:
		return inconclusive("%d of %d histories that seemed to need no judging had a violation: others may be missed", c.Checks.Wrong,
			c.Checks.Doubted)
	case len(c.Troubles) > 0:
		return inconclusive("some schedules could not be carried out: %s", c.Troubles[0].Sentence)
	case c.Schedules == 0:
		return inconclusive("nothing was run")
	case c.PassedOn == 0:
		return inconclusive("in %d schedules no request was passed on to a peer", c.Schedules)
	case c.Method == MethodRandom && states < FewestStates:
		return inconclusive("only %d of the interesting states were reached in %d schedules; want at least %d", states, c.Schedules, FewestStates)
	case !c.Complete:
		return inconclusive("it was ended after %d schedules, without a violation until then", c.Schedules)
	case len(c.Shards) < c.Of:
		return CampaignVerdict{invariant.OutcomePass,
			fmt.Sprintf("no violation in %d schedules of shard %d of %d", c.Schedules, c.Shards[0].Index, c.Of)}
	default:
		return CampaignVerdict{invariant.OutcomePass, fmt.Sprintf("no violation in %d schedules", c.Schedules)}
	}
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
