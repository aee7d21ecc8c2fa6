package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

// flaps is how often the link is cut.
const flaps = 6

var flappingLink = Scenario{
	Name:             "flapping-link",
	Happens:          "The first server alone runs TO. The second loses and regains the way to it again and again, every few seconds.",
	Holds:            "As long as the way is there requests are passed on, and when it is not the answer is 503, never 404; all is well soon after the last time.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Network,
	Control:          outOfReach,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(2 * time.Second)
		for range flaps {
			heal := plan.suffer(cut("b", "a"))
			plan.soak(3 * time.Second)
			heal()
			plan.soak(3 * time.Second)
		}
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
