package mutants

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim"
)

// verifiesNobody is of the network between servers rather than of the proxy, whose transport the
// simulator replaces. Random schedules have no certificates that are wrong: it is for the scenarios
// to find.
var verifiesNobody = mutant{
	part: "transport", name: "verifies-nobody",
	wrong: "Servers take every certificate for a good one: their own, that of the peer that they ask, and that of the peer that asks them.",
	plant: func(acted func()) sim.Defects {
		return sim.Defects{Believes: func() bool { acted(); return true }}
	},
}

// TestEveryScenarioOfCertificatesFailsWhereNobodyVerifiesAny is for all scenarios about trust,
// whatever else is their control: one who takes all certificates answers every request as though
// nothing were wrong.
func TestEveryScenarioOfCertificatesFailsWhereNobodyVerifiesAny(t *testing.T) {
	const about = "OnlyTrustedPeers"
	findings.all++
	found := 0
	for _, s := range scenarios.All() {
		if !slices.Contains(s.About, about) || !s.Limits.Allows(scenario.BackendSim) {
			continue
		}
		found++
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if outcome := outcomes(t, s, mutant{})[about]; outcome != invariant.OutcomePass {
				t.Errorf("without the defect it is %s", outcome)
			}
			with := outcomes(t, s, verifiesNobody)
			if with[about] != invariant.OutcomeFail {
				t.Errorf("with the defect it is %s", with[about])
			}
			for name, outcome := range with { // in any order
				if outcome == invariant.OutcomeFail {
					findings.by(name)
				}
			}
		})
	}
	if found < 7 {
		t.Errorf("%d scenarios are about %s, want at least 7", found, about)
	}
}
