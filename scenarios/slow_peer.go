package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var slowPeer = scenario.Scenario{
	Name:    "slow-peer",
	Happens: "Only the first server runs TO. Everything between it and the others takes a fifth of a second, ±50 %, in each direction.",
	Holds: "Slow is not gone: no server forgets the first one or answers 404 for resources that only it serves, and " +
		"no write is carried out twice.",
	Source:  "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, Unserved: 100, Writes: 15},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			servers := plan.Names()
			plan.Settle(2 * time.Second)
			heal := plan.Suffer(bothWays(from(servers, fault.Fault{
				Kind: fault.Latency, To: "a", Latency: 200 * time.Millisecond, Jitter: 100 * time.Millisecond,
			}))...)
			plan.Soak(10 * time.Second)
			plan.Restart(servers[len(plan.Servers)-1]) // the server must then learn everything over the slow link
			plan.Settle(10 * time.Second)
			heal()
			plan.Converge()
		}),
}
