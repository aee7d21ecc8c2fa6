package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var crowds = scenario.Scenario{
	Name: "crowds",
	Happens: "The first server runs TO, the others FROM. One caller sends hundreds of requests at a time through the second server, for " +
		"what only the first serves: watches, large bodies sent slowly, lists that it does not read, and lists that it gives up. The second " +
		"server restarts between two such crowds. Others go on as before.",
	Holds: "Requests of other callers to the second server, passed on or not, do not fail, and wait no longer than they would at the server " +
		"that serves them.",
	Source:           "KEP-4020, goals: a request is handled by an apiserver that can serve it; KEP-1040, API Priority and Fairness",
	About:            []string{"Isolation", "ProxiedSucceed", "NoFalseNotFound", "AnsweredAlike", "NoCrash", "Converges"},
	MinServers:       2,
	NeedsTwoVersions: true,
	Family:           scenario.Requests,
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal, scenario.BackendKind}, Reason: "because a crowd needs connections that are real",
	},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, PassedOn: 300}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(5 * time.Second)
		for i, kind := range scenario.Crowds {
			if i > 0 {
				// Once a crowd has occupied all seats of its priority level, the level borrows seats of
				// other levels, and the next crowd would find enough. A new process has borrowed none.
				plan.Restart("b")
				plan.Settle(10 * time.Second)
			}
			plan.Add(scenario.Step{Action: scenario.StartCrowd, Server: "b", Crowd: kind})
			plan.Soak(20 * time.Second)
			plan.Add(scenario.Step{Action: scenario.EndCrowd, Server: "b"})
			plan.Soak(2 * time.Second)
		}
		plan.Converge()
	}),
}
