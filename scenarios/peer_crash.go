package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var peerCrash = scenario.Scenario{
	Name:    "peer-crash",
	Happens: "Only the first server runs TO. It is killed without warning, and started again after a while.",
	Holds: "While it is down, requests for resources that only it served are answered 503 or 404 in time, and no other server " +
		"crashes. Once it is back, every server can again answer requests for resources that only TO serves.",
	Source:  "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists; if it cannot be reached, 503",
	About:   []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	Labels:  []string{"conformance"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 100, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Kill("a")
		plan.Soak(36 * time.Second) // its endpoint lease expires after 15 s; a response may take 30 s
		plan.Start("a")
		plan.Converge()
	}),
}
