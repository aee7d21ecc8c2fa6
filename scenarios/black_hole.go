package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var blackHole = scenario.Scenario{
	Name: "black-hole",
	Happens: "Only the first server runs TO. Connections from the others to it stay open, and new ones are accepted, but no response comes " +
		"back. The process itself is healthy.",
	Holds: "Meanwhile the others answer 503 within a bounded time, never 404, for resources that only the first server serves. " +
		"Soon afterwards they answer such requests again.",
	Source:  "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: outOfReach,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(from(plan.Names(), fault.Fault{Kind: fault.Timeout, To: "a"})...)
		plan.Soak(plan.Bounds.Unavailable + 10*time.Second) // longer than a request may take
		heal()
		plan.Converge()
	}),
}
