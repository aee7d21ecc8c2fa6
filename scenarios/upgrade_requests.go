package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

var upgradeRequests = scenario.Scenario{
	Name: "upgrade-requests",
	Happens: "The first server runs TO, the others FROM. Beside the general load, clients ask for connections to be upgraded: watches by WebSocket, of what " +
		"all serve and of what only some do, and exec, attach and port-forward to a pod that is not there.",
	Holds:            "A watch by WebSocket of what only another server serves stands for as long as it was asked to and carries events, as one to the server itself; no request is denied for asking for an upgrade.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it; RFC 9110, 7.8",
	About:            []string{"NoFalseNotFound", "WatchesLast", "PassedOnUnchanged", "NoLoop", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Control:          mixedToTheEnd,
	Plan: func(p scenario.Parameters) scenario.Plan {
		plan := p.Cluster(p.Newest)
		plan.Traffic = scenario.UpgradeTraffic
		plan.Settle(25 * time.Second)
		plan.Converge()
		plan.Pressure = history.Pressure{Operations: 2500, Skewed: 400}
		return *plan
	},
}
