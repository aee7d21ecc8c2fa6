package kind

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
)

// The catalogue says where a scenario does not run, and the backend says what it cannot do. If one
// of the two omits a scenario, a suite would fail in the middle, or skip the scenario without need.
func TestTheCatalogueKnowsWhatAKindClusterCannotDo(t *testing.T) {
	for _, s := range scenarios.All() {
		plan := s.Plan(scenario.Parameters{Servers: max(3, s.MinServers), From: "v1.36.3", To: "v1.37.1", Bounds: history.DefaultBounds})
		refused := CheckPlan(plan)
		switch allowed := s.Limits.Allows(scenario.BackendKind); {
		case allowed && (refused != nil || s.MinServers > MaxServers):
			t.Errorf("%s runs on kind, says the catalogue, but with %d servers at the least: %v", s.Name, s.MinServers, refused)
		case !allowed && refused == nil && !slices.Equal(s.Limits.Backends, []string{scenario.BackendSim}): // those are too much for real servers
			t.Errorf("%s does not run on kind, says the catalogue (%s), but a kind cluster can do all of it", s.Name, s.Limits.Reason)
		}
	}
}
