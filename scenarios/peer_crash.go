package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var peerCrash = scenario.Scenario{
	Name:    "peer-crash",
	Happens: "Only the first server runs TO. It is killed without warning, and started again after a while.",
	Holds: "While it is down, what only it served is answered 503 or 404 in time, and no other server crashes. Once it is back, every " +
		"server can again answer requests for what only TO serves.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists; if it cannot be reached, 503",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 100, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Kill("a")
		plan.Soak(36 * time.Second) // its endpoint lease expires after 15 s; a response may take 30 s
		plan.Start("a")
		plan.Converge()
	}),
}

var peerCrashWithAlternative = scenario.Scenario{
	Name:    "peer-crash-with-alternative",
	Happens: "The first two servers run TO, the others FROM. The first is killed without warning, and started again after a while.",
	Holds: "No request for what only TO serves is answered 404. Beyond the KEP, which demands no second attempt: every server can answer " +
		"such requests all the time, since the second server serves them too. A write that the first may have carried out before it " +
		"was killed is not repeated, and may fail.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Labels:           []string{"conformance"},
	Control:          mixedToTheEnd,
	Plan: planned(firstTwoTo, pressure{Operations: 5000, Unserved: 100, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Kill("a")
		plan.Soak(20 * time.Second)
		plan.Start("a")
		plan.Converge()
	}),
}
