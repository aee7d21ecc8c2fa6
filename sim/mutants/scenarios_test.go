package mutants

import (
	"slices"
	"sync"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/scenarios"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

// scenarioQPS is a little more than the load that the scenarios' minimum pressure needs.
const scenarioQPS = 110

// rateOf is the load on a scenario. With its defect one request comes to servers again and again,
// and the pressure that it demands is low.
func rateOf(s scenario.Scenario) float64 {
	if s.Name == "loop-by-mutual-stale-belief" {
		return 30
	}
	return scenarioQPS
}

// TestScenariosFailOnTheirDefects plants the defect that a scenario names as its control. A defect
// on which the scenario fails is the proof that the scenario can fail. That the scenario passes
// without the defect is in the simulated corpus (internal/lab).
func TestScenariosFailOnTheirDefects(t *testing.T) {
	findings.all++
	for _, s := range scenarios.All() {
		if s.Control.Defect == "" || !s.Limits.Allows(scenario.BackendSim) {
			continue
		}
		t.Run(s.Name+"/"+s.Control.Defect, func(t *testing.T) {
			known := slices.Concat(catalogue(), byScenario)
			i := slices.IndexFunc(known, func(m mutant) bool { return m.name == s.Control.Defect })
			if i < 0 {
				t.Fatalf("there is no defect of that name")
			}
			t.Parallel()
			with := outcomes(t, s, known[i])
			for _, must := range s.Control.Invariants {
				if outcome := with[must]; outcome != invariant.OutcomeFail {
					t.Errorf("with the defect %s is %s", must, outcome)
				}
			}
			for name, outcome := range with { // the order does not matter
				if outcome == invariant.OutcomeFail {
					findings.by(name)
				}
			}
		})
	}
}

// outcomes runs a scenario on the reference with a defect. It returns the outcomes of the
// invariants, by their names.
func outcomes(t *testing.T, s scenario.Scenario, m mutant) map[string]invariant.Outcome {
	t.Helper()
	changed := spec
	changed.Changes = m.changes
	policy, _, err := changed.Build()
	if err != nil {
		t.Fatal(err)
	}
	setup := sim.Setup{Version: recorded.Get, Policy: func(string) (proxy.Policy, bool) { return policy, true }, Reference: true}
	acted := func() {}
	if m.plant != nil {
		setup.Defects = m.plant(acted)
	}
	if m.setup != nil {
		setup = m.setup(setup, acted)
	}
	simulator := sim.New(setup)
	defer simulator.Close()
	plan := s.Plan(scenario.Parameters{Servers: max(3, s.MinServers), From: spec.From, To: spec.To, Bounds: history.DefaultBounds})
	c := sim.CaseOf(plan, rateOf(s))
	result, err := simulator.Run(&c, tape.Seeded(firstSeed), sim.Options{Run: history.Run{About: s.About, Pressure: plan.Pressure, Bounds: plan.Bounds}, StopAtError: true})
	if err != nil {
		t.Fatal(err)
	}
	if result.History.End.Error != "" {
		t.Fatal(result.History.End.Error)
	}
	all := map[string]invariant.Outcome{}
	for _, v := range invariant.Judge(result.History) {
		all[v.Name] = v.Outcome
	}
	return all
}

// finders are the invariants that have found a mutant in the tests before. It is safe for
// concurrent use.
type finders struct {
	mu    sync.Mutex
	names map[string]bool
	all   int // number of tests that have searched for all their mutants
}

var findings = finders{names: map[string]bool{}}

func (f *finders) by(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name] = true
}

// TestEveryInvariantHasFoundSomething runs after the tests that plant defects. An invariant that
// never finds a defect may be unable to find one.
func TestEveryInvariantHasFoundSomething(t *testing.T) {
	if findings.all < 4 {
		t.Skip("not all tests that plant defects have run, because of -run or -only")
	}
	for _, inv := range invariant.All() {
		switch found := findings.names[inv.Name]; {
		// In the simulator, no client requests OpenAPI, and requests for the document of a group
		// that not all servers serve are rare. Histories made by hand prove the invariants about
		// these. The simulator has no controllers, no informers, no etcd and no crowds. Histories made
		// by hand and real runs prove the invariants about those, a planted defect of real servers
		// the one about crowds.
		case slices.Contains([]string{
			"OpenAPIDescribes", "GroupVersionsDescribed", "NoWrongfulDeletion", "NothingLeftBehind", "OrphansCollected", "DeletionEnds", "QuotaFollows",
			"NoLostEvents", "NoFieldLost", "OneLeader", "MigrationsSucceed", "Settles", "Isolation",
		}, inv.Name):
			if found {
				t.Errorf("%s has found a mutant: it needs no exemption", inv.Name)
			}
		case !found:
			t.Errorf("%s has found no mutant", inv.Name)
		}
	}
}
