package scenarios

import (
	"time"

	"github.com/skewproof/skewproof/internal/scenario"
)

var crowds = scenario.Scenario{
	Name: "crowds",
	Happens: "The first server runs TO, the others FROM. One caller keeps hundreds of ordinary watches open through the second server, of " +
		"what only the first serves. Others go on as before.",
	Holds: "Requests of other callers to the second server, passed on or not, do not fail, and wait no longer than they would at the server " +
		"that serves them.",
	Source: "KEP-4020, goals: a request is handled by an apiserver that can serve it; KEP-1040, API Priority and Fairness",
	About:  []string{"Isolation", "ProxiedSucceed", "NoFalseNotFound", "AnsweredAlike", "NoCrash", "Converges"},
	Limits: scenario.Limits{
		Backends: []string{scenario.BackendLocal, scenario.BackendKind},
		Subjects: []string{scenario.SubjectReference, scenario.SubjectNone},
		Reason:   "because a crowd needs connections that are real, and shows that the reference keeps callers apart",
	},
	Control: mixedToTheEnd,
	Plan: planned(firstTo, pressure{Operations: 5000, Skewed: 300, PassedOn: 300}, func(plan *scenario.Plan, p scenario.Parameters) {
		plan.Settle(5 * time.Second)
		plan.Add(scenario.Step{Action: scenario.StartCrowd, Server: "b"})
		plan.Soak(20 * time.Second)
		plan.Add(scenario.Step{Action: scenario.EndCrowd, Server: "b"})
		plan.Soak(2 * time.Second)
		plan.Converge()
	}),
}
