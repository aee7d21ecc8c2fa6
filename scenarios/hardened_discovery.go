package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var hardenedDiscovery = scenario.Scenario{
	Name: "hardened-discovery",
	Happens: "Only the first server runs TO. Discovery is taken from all users to whom it is not granted by name, as hardened clusters do. " +
		"The second server is restarted. Then discovery is granted to the user system:apiserver, and the second server is restarted again.",
	Holds: "The second server learns what its peers serve, or it is not ready: it does not answer 404 for resources that only the first " +
		"serves. With the grant everything is right again.",
	Source: "KEP-4020, goals: a request whose server cannot be reached gets 503, not 404; CIS Kubernetes benchmark: no rights for all " +
		"authenticated users without need",
	About:      []string{"NoFalseNotFound", "DiscoveryComplete", "NoCrash", "Converges"},
	MinServers: 3,
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal, scenario.BackendSim},
		Reason:   "because other programs of a cluster read discovery too, and skewproof would have to name all of them",
	},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 300, MergedDocuments: 60},
		func(plan *scenario.Plan, _ scenario.Parameters) {
			plan.Settle(4 * time.Second)
			plan.Add(scenario.Step{Action: scenario.WithdrawDiscovery})
			plan.Restart("b")
			plan.Settle(12 * time.Second)
			plan.Add(scenario.Step{Action: scenario.GrantDiscovery})
			plan.Restart("b")
			plan.Converge()
		}),
}
