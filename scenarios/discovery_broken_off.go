package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
)

var discoveryBrokenOff = scenario.Scenario{
	Name: "discovery-broken-off",
	Happens: "Only the first server runs TO. When peers fetch what it serves, its responses (200) break off: at first before the first " +
		"byte of each document, later half way through it. Each time another server is restarted, so that all servers fetch the " +
		"documents again.",
	Holds: "An empty body is not an empty list, and half a list is not a short one: the others remember what they knew about the first " +
		"server, do not treat what they could not fetch as absent, and learn it once responses are complete again.",
	Source: "KEP-4020, goals; k8s.io/apiserver, pkg/util/peerproxy: whatever has come of a body when reading it fails is decoded, and an " +
		"empty one decodes to a document without groups",
	About:      []string{"NoFalseNotFound", "TrueNotFound", "NoLoop", "NoCrash", "Converges"},
	MinServers: 3,
	Labels:     []string{"conformance"},
	Limits:     truncatedDiscovery.Limits,
	Control:    scenario.Control{Defect: "nothing-is-an-empty-list", Invariants: []string{"NoFalseNotFound"}},
	Plan: planned(firstTo, pressure{Operations: 4000, Skewed: 500, Unserved: 100}, func(plan *scenario.Plan, _ scenario.Parameters) {
		plan.Settle(2 * time.Second)
		for _, manner := range []fault.DiscoveryFailure{fault.BreaksOff, fault.CutShort} {
			for _, path := range []string{"/api", "/apis"} {
				plan.Add(scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: path, Failure: manner})
			}
			plan.Restart("c")
			plan.Settle(10 * time.Second)
			for _, path := range []string{"/api", "/apis"} {
				plan.Add(scenario.Step{Action: scenario.RestoreDiscovery, Server: "a", Path: path})
			}
			plan.Settle(10 * time.Second)
		}
		plan.Converge()
	}),
}
