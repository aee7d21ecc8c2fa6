package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var crashLoop = scenario.Scenario{
	Name:    "crash-loop",
	Happens: "Only the first server runs TO. It is killed and started several times, a few seconds after it was ready each time.",
	Holds: "While it is up, no request for resources that it serves is answered 404, no other server is affected, and after the " +
		"last start everything is right. Beyond the KEP: whenever it is up and the others have had the time to know that, " +
		"they can answer requests for resources that only it serves.",
	Source:  "KEP-4020, goals; kubernetes/kubernetes: a peer's lease may outlive its process, and a new process holds the same identity",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 100, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		for range crashes {
			plan.Kill("a")
			plan.Soak(2 * time.Second)
			plan.Start("a")
			plan.Settle(crashesAfter)
		}
		plan.Converge()
	}),
}

// crashes is the number of times that the server is killed.
const crashes = 4

// crashesAfter is the server's uptime between kills: longer than history.DefaultBounds.Staleness.
const crashesAfter = 9 * time.Second
