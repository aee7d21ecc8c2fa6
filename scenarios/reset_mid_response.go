package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

var resetMidResponse = Scenario{
	Name:             "reset-mid-response",
	Happens:          "The first server alone runs TO. Every connection from another one to it is closed once 12,000 bytes of answers have come over it, in the middle of whatever comes then.",
	Holds:            "An answer that breaks off is seen to have broken off, a write is not carried out twice for it, and nobody forgets what the first server serves.",
	Source:           "RFC 9110, 9.2.2, and RFC 9112, 8: what was cut short must not look complete; KEP-4020, goals",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "AnsweredInFull", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Network,
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		plan.settle(4 * time.Second)
		heal := plan.suffer(from(plan.names(), fault.Fault{Kind: fault.LimitData, To: "a", Bytes: 12_000, Direction: fault.Down})...)
		plan.soak(25 * time.Second)
		heal()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 500, Unserved: 100}
		return *plan
	},
}
