package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
)

var peerPartition = Scenario{
	Name:             "peer-partition",
	Happens:          "The first server alone runs TO. The network between it and the second is cut both ways for a while, then healed.",
	Holds:            "Meanwhile the second server answers 503, and never 404, for what only the first serves; all is well soon after. Beyond the KEP: the others notice nothing.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Network,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(4 * time.Second)
		plan.inject("b to a", cut("b", "a"))
		plan.inject("a to b", cut("a", "b"))
		plan.soak(20 * time.Second)
		plan.heal("b to a")
		plan.heal("a to b")
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 100}
		return *plan
	},
}
