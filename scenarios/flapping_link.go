package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// flaps is how often the link is cut.
const flaps = 4

// linkUp is for how long the way is there in between: longer than a server may take to notice (history.DefaultBounds.Staleness).
const linkUp = 9 * time.Second

var flappingLink = scenario.Scenario{
	Name:             "flapping-link",
	Happens:          "The first server alone runs TO. The second loses and regains the way to it again and again, every few seconds.",
	Holds:            "When the way is not there the answer is 503, never 404, and all is well soon after the last time. Beyond the KEP: a few seconds after each return of the way every request is passed on again.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "WritesOnce", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(2 * time.Second)
		for range flaps {
			heal := plan.Suffer(cut("b", "a"))
			plan.Soak(3 * time.Second)
			heal()
			plan.Soak(linkUp)
		}
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
