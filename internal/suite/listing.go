package suite

import (
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Listed is a scenario with the facts that help users to choose one.
type Listed struct {
	scenario.Scenario
	// Minutes are how long a run with the default flags is expected to take on real processes; 0 if
	// the scenario does not run there.
	Minutes float64 `json:"minutes,omitempty"`
	// Choosable are all labels that choose it: its own, those of its family, and its name.
	Choosable []string `json:"choosable"`
}

// List returns the scenarios that labels choose, in the order of the catalogue. The empty
// expression chooses all. It is an error if there are none.
func List(expression string) ([]Listed, error) {
	chosen, err := Choose(expression)
	if err != nil {
		return nil, err
	}
	listed := make([]Listed, 0, len(chosen))
	for _, s := range chosen {
		l := Listed{Scenario: s, Choosable: labels(s)}
		if s.Limits.Allows(scenario.BackendLocal) {
			plan := s.Plan(scenario.Parameters{
				Servers: max(run.DefaultServers, s.MinServers), From: run.DefaultFrom, To: run.DefaultTo, Bounds: history.DefaultBounds,
			})
			l.Minutes = float64(run.Expected(plan).Round(6*time.Second)) / float64(time.Minute)
		}
		listed = append(listed, l)
	}
	return listed, nil
}
