package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var restartDuringPartition = scenario.Scenario{
	Name:             "restart-during-partition",
	Happens:          "The first server alone runs TO. While the second cannot reach it, the third, which has nothing to do with it, is restarted.",
	Holds:            "What the second server once knew of the first it does not forget: it answers 503, not 404, for what only the first serves.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"smoke", "conformance"},
	Control:          outOfReach,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Soak(5 * time.Second)
		plan.Restart("c")
		// Upstream asks again after waits that double from 5 ms on (k8s.io/apiserver, pkg/util/peerproxy/peer_discovery.go), from when c begins to stop,
		// and the more so when c comes back: last 36 s after that at the most, and then not before 61 s. A heal beside a retry would leave it to
		// chance whether b is seen to know less than the others once it could know better.
		plan.Soak(35 * time.Second)
		plan.Heal("b to a")
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 5000, Skewed: 300, Unreachable: 50}
		return *plan
	},
}
