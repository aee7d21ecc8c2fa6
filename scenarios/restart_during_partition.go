package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var restartDuringPartition = Scenario{
	Name:             "restart-during-partition",
	Happens:          "The first server alone runs TO. While the second cannot reach it, the third, which has nothing to do with it, is restarted.",
	Holds:            "What the second server once knew of the first it does not forget: it answers 503, not 404, for what only the first serves.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           Network,
	Labels:           []string{"smoke", "conformance"},
	Control:          outOfReach,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(4 * time.Second)
		plan.inject("b to a", cut("b", "a"))
		plan.soak(5 * time.Second)
		plan.restart("c")
		plan.soak(betweenRetries)
		plan.heal("b to a")
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
