package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var writesOnce = scenario.Scenario{
	Name: "writes-once",
	Happens: "The first two servers run TO, the others FROM. Fifteen times, for a second, the connections from the last server to both are " +
		"reset when a response comes back: the request has been carried out by then.",
	Holds: "A write whose response was lost is not sent to the other server. It is carried out at most once, and its client gets an " +
		"error.",
	Source:     "RFC 9110, 9.2.2: a proxy must not automatically retry what is not idempotent",
	About:      []string{"NoFalseNotFound", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Control:    scenario.Control{Defect: "broken-counts-as-undelivered", Invariants: []string{"WritesOnce"}},
	Plan: planned(firstTwoTo, pressure{Operations: 4000, Skewed: 500, Writes: 10}, func(plan *scenario.Plan, _ scenario.Parameters) {
		last := plan.Names()[len(plan.Servers)-1]
		plan.Settle(2 * time.Second)
		for range resets {
			heal := plan.Suffer(
				fault.Fault{Kind: fault.Reset, From: last, To: "a", Direction: fault.Down},
				fault.Fault{Kind: fault.Reset, From: last, To: "b", Direction: fault.Down})
			plan.Soak(time.Second)
			heal()
			plan.Soak(700 * time.Millisecond)
		}
		plan.Converge()
	}),
}

// resets is the number of times that connections are reset during the writes.
const resets = 15
