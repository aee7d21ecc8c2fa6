package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var resetMidResponse = scenario.Scenario{
	Name:             "reset-mid-response",
	Happens:          "The first server alone runs TO. Every connection from another one to it is closed once 12,000 bytes of answers have come over it, in the middle of whatever comes then.",
	Holds:            "An answer that breaks off is seen to have broken off, a write is not carried out twice for it, and nobody forgets what the first server serves.",
	Source:           "RFC 9110, 9.2.2, and RFC 9112, 8: what was cut short must not look complete; KEP-4020, goals",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "AnsweredInFull", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(from(plan.Names(), fault.Fault{Kind: fault.LimitData, To: "a", Bytes: 12_000, Direction: fault.Down})...)
		plan.Soak(25 * time.Second)
		heal()
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 500, Unserved: 100}
		return *plan
	},
}
