package campaign

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/search"
	"github.com/skewproof/skewproof/sim/tape"
)

// modelRuns is how often a schedule is run in the simulator, with other choices each time.
const modelRuns = 5

// model runs a schedule in the simulator, with the presets of its versions, and reports whether
// that shows the violation. why is set if the simulator cannot run it.
func (c *Campaign) model(f *newFinding) (knows bool, why string) {
	defer func() {
		if r := recover(); r != nil {
			knows, why = false, fmt.Sprintf("it cannot run the schedule: panic: %v", r)
		}
	}()
	for _, v := range f.schedule.plan.Versions() {
		if _, _, err := sim.PolicyOf(c.Spec.Subject, v); err != nil {
			return false, "it has no preset: " + err.Error()
		}
	}
	s := sim.New(sim.SetupOf(c.Spec.Subject))
	defer s.Close()
	described := history.Run{
		Schema: history.SchemaVersion, Scenario: "campaign", Backend: scenario.BackendSim, Subject: c.Spec.Subject, From: f.schedule.from,
		To:   f.schedule.to,
		Seed: f.schedule.seed, Bounds: search.Bounds,
	}
	tried := search.Simulated(sim.CaseOf(f.schedule.plan, c.Spec.QPS))
	for i := range uint64(modelRuns) {
		result, err := s.Run(&tried, tape.Seeded(f.schedule.seed+i), sim.Options{Run: described})
		if err != nil {
			return false, "it cannot run the schedule: " + err.Error()
		}
		found := search.Violations(c.Findings, invariant.Judge(result.History))
		if slices.ContainsFunc(found, func(v search.Violation) bool { return v.ViolationKind == f.ViolationKind }) {
			return true, ""
		}
	}
	return false, ""
}

// tryModel records, once, how the simulator judges the schedule of a finding.
func (c *Campaign) tryModel(f *newFinding) {
	if f.real.Model != "" {
		return
	}
	knows, why := c.model(f)
	switch {
	case why != "":
		f.real.Model = why
	case knows:
		f.real.Model = "the model knows it"
	default:
		f.real.Model = "the model does not know it"
	}
}
