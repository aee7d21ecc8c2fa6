package campaign

import (
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
	"github.com/skewproof/skewproof/sim/tape"
)

// modelRuns is how often a schedule is run in the simulator, with other choices each time.
const modelRuns = 5

// notInModel says that the simulator does not show a violation.
const notInModel = "the model does not know it"

// model runs a schedule in the simulator, with the presets of its versions, and says whether that
// shows the violation, or why the simulator cannot run it.
func (c *Campaign) model(f *newFinding) (says string) {
	defer func() {
		if r := recover(); r != nil {
			says = fmt.Sprintf("it cannot run the schedule: panic: %v", r)
		}
	}()
	for _, v := range f.schedule.plan.Versions() {
		if _, _, err := sim.PolicyOf(c.Spec.Subject, v); err != nil {
			return "it has no preset: " + err.Error()
		}
	}
	s := sim.New(sim.SetupOf(c.Spec.Subject))
	defer s.Close()
	described := history.Run{
		Schema: history.SchemaVersion, Scenario: "campaign", Backend: scenario.BackendSim, Subject: c.Spec.Subject, From: c.chooser.from,
		To: c.chooser.to, Seed: f.schedule.seed, Bounds: search.Bounds,
	}
	tried := search.Simulated(sim.CaseOf(f.schedule.plan, c.Spec.QPS))
	for i := range uint64(modelRuns) {
		result, err := s.Run(&tried, tape.Seeded(f.schedule.seed+i), sim.Options{Run: described})
		if err != nil {
			return "it cannot run the schedule: " + err.Error()
		}
		if f.in(search.Violations(c.Findings, invariant.Judge(result.History))) {
			return "the model knows it"
		}
	}
	return notInModel
}
