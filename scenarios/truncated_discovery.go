package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var truncatedDiscovery = scenario.Scenario{
	Name: "truncated-discovery",
	Happens: "Only the first server runs TO. When peers fetch what it serves, one of its two documents fails (500): at first /apis, later " +
		"/api. Each time another server is restarted, so that all servers fetch the documents again.",
	Holds: "Half an answer is not the whole one: the others remember what they knew about the first server, and do not treat what they " +
		"could not fetch as absent. Released versions do not differ in what /api lists, so its failure shows only that the rest is " +
		"not affected.",
	Source:     "KEP-4020, goals; k8s.io/apiserver, pkg/util/peerproxy: /api and /apis are fetched one after the other",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal, scenario.BackendSim},
		Reason:   "because it needs a proxy between two servers that has the keys of both",
	},
	Control: scenario.Control{Defect: "half-a-fetch-wipes-the-other-half", Invariants: []string{"NoFalseNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		for _, path := range []string{"/apis", "/api"} {
			plan.Add(scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: path})
			plan.Restart("c")
			plan.Settle(10 * time.Second)
			plan.Add(scenario.Step{Action: scenario.RestoreDiscovery, Server: "a", Path: path})
			plan.Settle(10 * time.Second)
		}
		plan.Converge()
	}),
}
