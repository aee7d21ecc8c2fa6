package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var peerPartition = scenario.Scenario{
	Name: "peer-partition",
	Happens: "Only the first server runs TO. The network between it and the second server is cut in both directions for a while, then " +
		"healed.",
	Holds: "Meanwhile the second server answers 503, never 404, for what only the first serves. Soon afterwards everything is right " +
		"again. Beyond the KEP: the other servers are not affected.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Inject("a to b", cut("a", "b"))
		plan.Soak(20 * time.Second)
		plan.Heal("b to a")
		plan.Heal("a to b")
		plan.Converge()
	}),
}

var oneWayPartition = scenario.Scenario{
	Name:    "one-way-partition",
	Happens: "Only the first server runs TO. For a while, the second server cannot connect to it, but it can connect to the second.",
	Holds: "Meanwhile the second server answers 503, never 404, for what only the first serves. Soon afterwards everything is right " +
		"again. Beyond the KEP: the first server goes on passing requests on to the second, and none of them fails.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(cut("b", "a"))
		plan.Soak(20 * time.Second)
		heal()
		plan.Converge()
	}),
}

var restartDuringPartition = scenario.Scenario{
	Name:             "restart-during-partition",
	Happens:          "Only the first server runs TO. While the second cannot reach it, the third, which is not involved, is restarted.",
	Holds:            "The second server remembers what it knew about the first: it answers 503, not 404, for what only the first serves.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"smoke", "conformance"},
	Control:          outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Soak(5 * time.Second)
		plan.Restart("c")
		// From when c begins to stop, and again when c comes back, upstream retries after waits
		// that double from 5 ms on (k8s.io/apiserver, pkg/util/peerproxy/peer_discovery.go): the
		// last retry is at most 36 s after that, and the next not before 61 s. If the link were
		// healed near a retry, chance would decide whether b is seen to know less than the others
		// although it could know better.
		plan.Soak(35 * time.Second)
		plan.Heal("b to a")
		plan.Converge()
	}),
}

var startupDuringPartition = scenario.Scenario{
	Name:             "startup-during-partition",
	Happens:          "Only the first server runs TO. The second is restarted while it cannot reach the first, so it must learn everything anew.",
	Holds:            "The second server does not treat what it could not learn as absent: it answers 503, not 404, for what only the first serves.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoCrash", "Converges"},
	MinServers:       3,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, Unreachable: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		plan.Inject("b to a", cut("b", "a"))
		plan.Restart("b")
		// Heal when no retry is due (see restart-during-partition): retries are 20 s and 41 s after
		// b's first attempt.
		plan.Soak(24 * time.Second)
		plan.Heal("b to a")
		plan.Converge()
	}),
}

var blackHole = scenario.Scenario{
	Name: "black-hole",
	Happens: "Only the first server runs TO. Connections from the others to it stay open, and new ones are accepted, but no response comes " +
		"back. The process itself is healthy.",
	Holds: "Meanwhile the others answer 503 within a bounded time, never 404, for what only the first server serves. Soon afterwards " +
		"they answer such requests again.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Labels:           []string{"conformance"},
	Control:          outOfReach,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300, Unreachable: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(from(plan.Names(), fault.Fault{Kind: fault.Timeout, To: "a"})...)
		plan.Soak(plan.Bounds.Unavailable + 10*time.Second) // longer than a request may take
		heal()
		plan.Converge()
	}),
}

// flaps is how often the link is cut.
const flaps = 4

// linkUp is how long the link works in between: longer than history.DefaultBounds.Staleness.
const linkUp = 9 * time.Second

var flappingLink = scenario.Scenario{
	Name:    "flapping-link",
	Happens: "Only the first server runs TO. The link from the second server to it is cut and healed several times, every few seconds.",
	Holds: "While the link is cut, the second server answers 503, never 404, and soon after the last cut everything is right. Beyond the " +
		"KEP: a few seconds after each healing every request is passed on again.",
	Source:           "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404",
	About:            []string{"NoFalseNotFound", "UnavailableOnPeerFailure", "NoLoop", "WritesOnce", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Control:          outOfReach,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300, Unreachable: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		for range flaps {
			heal := plan.Suffer(cut("b", "a"))
			plan.Soak(3 * time.Second)
			heal()
			plan.Soak(linkUp)
		}
		plan.Converge()
	}),
}
