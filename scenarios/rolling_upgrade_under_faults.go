package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var rollingUpgradeUnderFaults = scenario.Scenario{
	Name: "rolling-upgrade-under-faults",
	Happens: "The servers are upgraded one by one over a bad network: between neighbours every request is delayed by about a tenth of a " +
		"second, responses from the new server to the last one are slow, and after each upgrade the connections from the last server " +
		"to the new one are reset for a while.",
	Holds: "Requests may take longer, and some may fail, but none is answered 404 for resources that some server serves. Once " +
		"the network is healed everything is right.",
	Source:  "KEP-4020, goals, and risks: a peer that is slow or cannot be reached for a moment",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	Labels:  []string{"slow"},
	Control: withoutSteadyState,
	Plan: planned(noneTo, pressure{Operations: 4000, Skewed: 300, Unserved: 100, Writes: 5}, func(plan *scenario.Plan, p scenario.Parameters) {
		servers := plan.Names()
		last := servers[len(servers)-1]
		plan.Soak(3 * time.Second)
		// The latency is in direction Up: no other fault acts in the direction of the reset (Down).
		late := plan.Suffer(around(servers, fault.Fault{
			Kind: fault.Latency, Latency: 100 * time.Millisecond, Jitter: 50 * time.Millisecond, Direction: fault.Up,
		})...)
		for i, server := range servers {
			plan.Replace(server, p.To)
			if i == len(servers)-1 {
				break
			}
			reset := plan.Suffer(fault.Fault{Kind: fault.Reset, From: last, To: server, Direction: fault.Down})
			plan.Soak(3 * time.Second)
			reset()
			trickle := plan.Suffer(fault.Fault{Kind: fault.Bandwidth, From: last, To: server, Rate: 200_000, Direction: fault.Down})
			plan.Settle(6 * time.Second)
			trickle()
		}
		plan.Soak(4 * time.Second)
		late()
		plan.Converge()
	}),
}
