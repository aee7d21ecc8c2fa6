package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var resetMidResponse = scenario.Scenario{
	Name: "reset-mid-response",
	Happens: "Only the first server runs TO. Every connection from another server to it is closed after 12,000 bytes of responses, in the " +
		"middle of a response.",
	Holds: "A client can see that its response broke off, no write is carried out twice because of it, and no server forgets what the " +
		"first one serves.",
	Source:  "RFC 9110, 9.2.2, and RFC 9112, 8: what is truncated must not look complete; KEP-4020, goals",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "AnsweredInFull", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, Unserved: 100, Writes: 15},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Settle(4 * time.Second)
			heal := plan.Suffer(from(plan.Names(), fault.Fault{Kind: fault.LimitData, To: "a", Bytes: 12_000, Direction: fault.Down})...)
			plan.Soak(25 * time.Second)
			heal()
			plan.Converge()
		}),
}
