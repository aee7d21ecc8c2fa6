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
	Source:           "KEP-4020, scalability: leases in etcd say where peers are",
	About:            []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Control:          mixedToTheEnd,
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

var etcdCutOffOneServer = scenario.Scenario{
	Name: "etcd-cut-off-one-server",
	Happens: "Only the first server runs TO. It loses its connection to etcd for longer than its leases last: it runs and can be reached, " +
		"but peers no longer find its address. Then the connection is restored.",
	Holds: "Meanwhile no server answers 404 for what only the first one serves. Soon afterwards everything is right again. Beyond the " +
		"KEP: the other servers are not affected.",
	Source:           "KEP-4020, goals: 503, not 404; k8s.io/apiserver, pkg/reconcilers: a peer's endpoint lease lapses after 15 s",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Control:          mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(cut("a", fault.Etcd))
		plan.Soak(25 * time.Second)
		heal()
		// The etcd client of a kube-apiserver waits before it connects again, for up to 24 s after
		// such a cut.
		plan.ConvergeAfter(24 * time.Second)
	}),
}
