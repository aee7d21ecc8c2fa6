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

// crashes is how often the server is killed.
const crashes = 4

// crashesAfter is how long it is up in between: longer than history.DefaultBounds.Staleness.
const crashesAfter = 9 * time.Second

var crashLoop = scenario.Scenario{
	Name:    "crash-loop",
	Happens: "Only the first server runs TO. It is killed and started several times, a few seconds after it was ready each time.",
	Holds: "While it is up, no request for what it serves is answered 404, no other server is affected, and after the last start " +
		"everything is right. Beyond the KEP: whenever it is up and the others have had the time to know that, they can answer " +
		"requests for what only it serves.",
	Source:           "KEP-4020, goals; kubernetes/kubernetes: a peer's lease may outlive its process, and a new process holds the same identity",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Control:          mixedToTheEnd,
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

var peerPause = scenario.Scenario{
	Name: "peer-pause",
	Happens: "Only the first server runs TO. Its process is paused (SIGSTOP): connections stay open and nothing is answered. Then it is " +
		"resumed.",
	Holds: "Meanwhile the others answer 503 within a bounded time, never 404, for what only the first server serves. Soon afterwards " +
		"everything is right again.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Add(scenario.Step{Action: scenario.Pause, Server: "a"})
		plan.Soak(plan.Bounds.Unavailable + 10*time.Second) // longer than a request may take
		plan.Add(scenario.Step{Action: scenario.Resume, Server: "a"})
		plan.Converge()
	}),
}

var lastPeerLeaves = scenario.Scenario{
	Name:    "last-peer-leaves",
	Happens: "Only the first server runs TO. It is stopped for good.",
	Holds: "For what no server serves any more, every server answers 404, after a while in which 503 is right as well. Discovery no " +
		"longer lists it.",
	Source: "KEP-4020, design details, aggregation layer: a request for which there is no eligible peer is handled locally, and 404 if " +
		"the resource does not exist",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Labels:           []string{"smoke", "conformance"},
	Control:          scenario.Control{Defect: "gone-peer-kept", Invariants: []string{"TrueNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 300, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(10 * time.Second)
		plan.Stop("a")
		plan.Converge()
		plan.Soak(10 * time.Second)
	}),
}
