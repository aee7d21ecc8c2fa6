package mutants

import (
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim"
)

// verifiesNobody changes the network between servers and not the proxy, because the simulator
// replaces the proxy's transport. Random schedules have no wrong certificates, so only scenarios
// can find this mutant.
var verifiesNobody = mutant{
	part: "transport", name: "verifies-nobody",
	wrong: "Servers accept every certificate: their own, and those of both ends of a forwarded request.",
	plant: func(acted func()) sim.Defects {
		return sim.Defects{Believes: func() bool { acted(); return true }}
	},
}

// TestEveryScenarioOfCertificatesFailsWhereNobodyVerifiesAny runs all scenarios about trust, also
// those with another control. A server that accepts every certificate answers every request as if
// nothing were wrong. That the invariant holds without this is in the simulated corpus.
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
			with := outcomes(t, s, verifiesNobody)
			if with[about] != invariant.OutcomeFail {
				t.Errorf("with the defect it is %s", with[about])
			}
			for name, outcome := range with { // the order does not matter
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
