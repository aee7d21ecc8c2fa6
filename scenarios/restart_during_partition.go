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
		// Upstream asks again after waits that double from 5 ms on (k8s.io/apiserver, pkg/util/peerproxy/peer_discovery.go), from when c begins to stop,
		// and the more so when c comes back: last 36 s after that at the most, and then not before 61 s. A heal beside a retry would leave it to
		// chance whether b is seen to know less than the others once it could know better.
		plan.soak(35 * time.Second)
		plan.heal("b to a")
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
