package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
)

var slowPeer = Scenario{
	Name:             "slow-peer",
	Happens:          "The first server alone runs TO. Whatever goes between it and the others takes a fifth of a second, give or take half of that, each way.",
	Holds:            "Slow is not gone: nobody forgets the first server, or denies what only it serves, and no write is carried out twice.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it, if one exists",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "WritesOnce", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           Network,
	Control:          mixedToTheEnd,
	Plan: func(p Parameters) Plan {
		plan := p.cluster(p.newest)
		servers := plan.names()
		plan.settle(2 * time.Second)
		heal := plan.suffer(bothWays(from(servers, fault.Fault{
			Kind: fault.Latency, To: "a", Latency: 200 * time.Millisecond, Jitter: 100 * time.Millisecond,
		}))...)
		plan.soak(10 * time.Second)
		plan.restart(servers[p.Servers-1]) // which has to learn everything over the slow way
		plan.settle(10 * time.Second)
		heal()
		plan.converge()
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 500, Unserved: 100}
		return *plan
	},
}
