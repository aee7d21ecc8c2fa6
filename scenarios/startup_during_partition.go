package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var startupDuringPartition = scenario.Scenario{
	Name: "startup-during-partition",
	Happens: "Only the first server runs TO. The second is restarted while it cannot reach the first, so it must learn " +
		"everything again.",
	Holds: "The second server does not treat resources that it could not learn of as absent: it answers 503, not " +
		"404, for resources that only the first serves.",
	Source:     "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:      []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Control:    outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Restart("b")
		// Heal when no retry is due (see restart-during-partition): retries are 20 s and 41 s after
		// b's first attempt.
		plan.Soak(24 * time.Second)
		plan.Heal("b to a")
		plan.Converge()
	}),
}
