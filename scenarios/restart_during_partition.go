package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var restartDuringPartition = scenario.Scenario{
	Name:    "restart-during-partition",
	Happens: "Only the first server runs TO. While the second cannot reach it, the third, which is not involved, is restarted.",
	Holds: "The second server remembers what it knew about the first: it answers 503, not 404, for resources that " +
		"only the first serves.",
	Source:     "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:      []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"smoke", "conformance"},
	Control:    outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Nodes = aFewNodes
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Soak(5 * time.Second)
		plan.Restart("c")
		// Upstream retries a failed fetch after waits that double from 5 ms (k8s.io/apiserver,
		// pkg/util/peerproxy/peer_discovery.go). The waits start when c begins to stop, and again
		// when c comes back. After that, one retry comes at 36 s at the latest, and the next at 61
		// s at the earliest. If the link were healed close to a retry, only chance would decide
		// whether the run observes that b knows less than the others.
		plan.Soak(35 * time.Second)
		plan.Heal("b to a")
		plan.Converge()
	}),
}
