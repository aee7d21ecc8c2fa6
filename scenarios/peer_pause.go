package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var peerPause = scenario.Scenario{
	Name: "peer-pause",
	Happens: "Only the first server runs TO. Its process is paused (SIGSTOP): connections stay open and nothing is answered. Then it is " +
		"resumed.",
	Holds: "Meanwhile the others answer 503 within a bounded time, never 404, for resources that only the first server serves. " +
		"Soon afterwards everything is right again.",
	Source:  "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Pause, Server: "a"})
		plan.Soak(plan.Bounds.Unavailable + 10*time.Second) // longer than a request may take
		plan.Add(scenario.Step{Action: scenario.Resume, Server: "a"})
		plan.Converge()
	}),
}
