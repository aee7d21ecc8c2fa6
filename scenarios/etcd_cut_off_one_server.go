package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var etcdCutOffOneServer = scenario.Scenario{
	Name: "etcd-cut-off-one-server",
	Happens: "The first server alone runs TO. It loses its connection to etcd for longer than its leases there last: " +
		"it runs, can be reached, and is no longer where peers look for it. Then it has the connection back.",
	Holds:            "Meanwhile nobody says 404 for what only the first server serves; all is well soon after. Beyond the KEP: the others are not harmed.",
	Source:           "KEP-4020, goals: 503, not 404; k8s.io/apiserver, pkg/reconcilers: a peer's endpoint lease lapses after 15 s",
	About:            []string{"NoFalseNotFound", "NoLoop", "NoCrash", "Converges", "Available"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Processes,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Settle(4 * time.Second)
		heal := plan.Suffer(cut("a", fault.Etcd))
		plan.Soak(25 * time.Second)
		heal()
		// A kube-apiserver is not back at once: its client of etcd waits before it tries again, after so long a cut for up to 24 s.
		plan.ConvergeAfter(24 * time.Second)
		plan.Pressure = history.Pressure{Operations: 4000, Skewed: 300}
		return *plan
	},
}
