package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var etcdSlow = scenario.Scenario{
	Name: "etcd-slow",
	Happens: "Only the first server runs TO. Every request to etcd takes a tenth of a second longer, ±50 %. Meanwhile one server is " +
		"restarted.",
	Holds: "Everything takes longer and nothing else changes: leases are renewed, peers are found, and a server that starts learns about " +
		"the others.",
	Source:  "KEP-4020, scalability: leases in etcd say where peers are",
	About:   []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Unserved: 100, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		heal := plan.Suffer(from(plan.Names(), fault.Fault{
			Kind: fault.Latency, To: fault.Etcd, Latency: 50 * time.Millisecond, Jitter: 25 * time.Millisecond,
		})...)
		plan.Soak(10 * time.Second)
		plan.Restart("b")
		plan.Settle(10 * time.Second)
		heal()
		plan.Converge()
	}),
}
