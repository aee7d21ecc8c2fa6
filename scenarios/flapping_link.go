package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var flappingLink = scenario.Scenario{
	Name:    "flapping-link",
	Happens: "Only the first server runs TO. The link from the second server to it is cut and healed several times, every few seconds.",
	Holds: "While the link is cut, the second server answers 503, never 404, and soon after the last cut everything is right. Beyond the " +
		"KEP: a few seconds after each healing every request is passed on again.",
	Source:  "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "WritesOnce", "NoCrash", "Converges", "Available"},
	Control: outOfReach,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300, Unreachable: 50, Writes: 15},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Settle(2 * time.Second)
			for range flaps {
				heal := plan.Suffer(cut("b", "a"))
				plan.Soak(3 * time.Second)
				heal()
				plan.Soak(linkUp)
			}
			plan.Converge()
		}),
}

// flaps is the number of times that the link is cut.
const flaps = 4

// linkUp is how long the link works between cuts: longer than history.DefaultBounds.Staleness.
const linkUp = 9 * time.Second
