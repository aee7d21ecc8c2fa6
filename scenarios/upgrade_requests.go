package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var upgradeRequests = scenario.Scenario{
	Name: "upgrade-requests",
	Happens: "The first server runs TO, the others FROM. Beside the general load, clients ask for connections to be upgraded: watches over " +
		"WebSocket, of resources that all or only some servers serve, and exec, attach and port-forward to a pod that does not exist. " +
		"One request in five asks for SPDY instead.",
	Holds: "A watch over WebSocket of resources that only another server serves lasts as long as it was asked to and delivers " +
		"events, like a watch at that server. No request is denied because it asks for an upgrade.",
	Source: "KEP-4020, goals: a request is handled by an apiserver that can serve it; RFC 9110, 7.8",
	About: []string{"NoFalseNotFound", "WatchesLast", "AnsweredAlike", "IdentityPreserved", "PassedOnUnchanged", "NoLoop",
		"Converges"},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 2500, Skewed: 400, PassedOn: 200, Upgrades: 45},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Traffic = scenario.UpgradeTraffic
			plan.Settle(25 * time.Second)
			plan.Converge()
		}),
}
