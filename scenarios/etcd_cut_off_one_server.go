package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var etcdCutOffOneServer = scenario.Scenario{
	Name: "etcd-cut-off-one-server",
	Happens: "Only the first server runs TO. It loses its connection to etcd for longer than its leases last: it runs and can be reached, " +
		"but peers no longer find its address. Then the connection is restored.",
	Holds: "Meanwhile no server answers 404 for resources that only the first one serves. Soon afterwards everything is right " +
		"again. Beyond the KEP: the other servers are not affected.",
	Source:  "KEP-4020, goals: 503, not 404; k8s.io/apiserver, pkg/reconcilers: a peer's endpoint lease lapses after 15 s",
	About:   []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(cut("a", fault.Etcd))
		plan.Soak(25 * time.Second)
		heal()
		// The etcd client of a kube-apiserver waits up to 24 s before it connects again after such
		// a cut.
		plan.ConvergeAfter(24 * time.Second)
	}),
}
