package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var peerCrashWithAlternative = scenario.Scenario{
	Name:    "peer-crash-with-alternative",
	Happens: "The first two servers run TO, the others FROM. The first is killed without warning, and started again after a while.",
	Holds: "No request for resources that only TO serves is answered 404. Beyond the KEP, which demands no second attempt: " +
		"every server can answer such requests all the time, since the second server serves them too. A write that the " +
		"first may have carried out before it was killed is not repeated, and may fail.",
	Source:     "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Control:    mixedToTheEnd,
	Plan: planned(firstTwoTo, pressure{Operations: 5000, Unserved: 100, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Kill("a")
		plan.Soak(20 * time.Second)
		plan.Start("a")
		plan.Converge()
	}),
}
