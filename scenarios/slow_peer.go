package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var slowPeer = scenario.Scenario{
	Name:             "slow-peer",
	Happens:          "Only the first server runs TO. Everything between it and the others takes a fifth of a second, ±50 %, in each direction.",
	Holds:            "Slow is not gone: no server forgets the first one or answers 404 for what only it serves, and no write is carried out twice.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		servers := plan.Names()
		plan.Settle(2 * time.Second)
		heal := plan.Suffer(bothWays(from(servers, fault.Fault{
			Kind: fault.Latency, To: "a", Latency: 200 * time.Millisecond, Jitter: 100 * time.Millisecond,
		}))...)
		plan.Soak(10 * time.Second)
		plan.Restart(servers[len(plan.Servers)-1]) // which must learn everything over the slow link
		plan.Settle(10 * time.Second)
		heal()
		plan.Converge()
	}),
}

var bandwidthStarvedList = scenario.Scenario{
	Name: "bandwidth-starved-list",
	Happens: "Only the first server runs TO. Clients list many objects, and the others get its responses at only a few hundred kilobytes a " +
		"second.",
	Holds:            "A slow list that ends properly is complete. No server takes the first one for gone.",
	Source:           "KEP-4020, goals; client-go: a list is read to its end",
	About:            []string{"NoFalseNotFound", "ListsAgree", "AnsweredInFull", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2000, Skewed: 300, Unserved: 50}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Traffic = scenario.LargeListTraffic
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(from(plan.Names(), fault.Fault{Kind: fault.Bandwidth, To: "a", Rate: 300_000, Direction: fault.Down})...)
		plan.Soak(25 * time.Second)
		heal()
		plan.Converge()
	}),
}

var resetMidResponse = scenario.Scenario{
	Name: "reset-mid-response",
	Happens: "Only the first server runs TO. Every connection from another server to it is closed after 12,000 bytes of responses, in the " +
		"middle of a response.",
	Holds: "A client can see that its response broke off, no write is carried out twice because of it, and no server forgets what the " +
		"first one serves.",
	Source:           "RFC 9110, 9.2.2, and RFC 9112, 8: what is truncated must not look complete; KEP-4020, goals",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "AnsweredInFull", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Network,
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(from(plan.Names(), fault.Fault{Kind: fault.LimitData, To: "a", Bytes: 12_000, Direction: fault.Down})...)
		plan.Soak(25 * time.Second)
		heal()
		plan.Converge()
	}),
}
