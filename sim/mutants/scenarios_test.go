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

// scenarioQPS is a little more than the pressure that scenarios ask for.
const scenarioQPS = 110

// TestScenariosFailOnTheirDefects plants the defect that a scenario names as its control: without
// one on which it fails, nobody knows that it can.
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
			without, with := outcomes(t, s, mutant{}), outcomes(t, s, known[i])
			for _, must := range s.Control.Invariants {
				if outcome := without[must]; outcome != invariant.OutcomePass {
					t.Errorf("without the defect %s is %s", must, outcome)
				}
				if outcome := with[must]; outcome != invariant.OutcomeFail {
					t.Errorf("with the defect %s is %s", must, outcome)
				}
			}
			for name, outcome := range with { // in any order
				if outcome == invariant.OutcomeFail {
					findings.by(name)
				}
			}
		})
	}
}

// outcomes runs a scenario on the reference with a defect and returns what the invariants say of
// it, by their names.
func outcomes(t *testing.T, s scenario.Scenario, m mutant) map[string]invariant.Outcome {
	t.Helper()
	changed := spec
	changed.Changes = m.changes
	policy, _, err := changed.Build()
	if err != nil {
		t.Fatal(err)
	}
	setup := sim.Setup{Version: recorded.Get, Policy: func(string) (proxy.Policy, bool) { return policy, true }, Sidecar: true}
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
	result, err := simulator.Run(
		&sim.Case{Servers: plan.Servers, Steps: plan.Steps, Load: &sim.Load{QPS: scenarioQPS, Traffic: plan.Traffic}}, tape.Seeded(firstSeed),
		sim.Options{Run: history.Run{About: s.About, Pressure: plan.Pressure, Bounds: plan.Bounds}, StopAtError: true})
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

// finders are the invariants that have found some mutant in the tests before. It may be used
// concurrently.
type finders struct {
	mu    sync.Mutex
	names map[string]bool
	all   int // tests that have looked for all of theirs
}

var findings = finders{names: map[string]bool{}}

func (f *finders) by(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name] = true
}

// TestEveryInvariantHasFoundSomething comes after those that plant defects: an invariant that never
// finds any may be unable to.
func TestEveryInvariantHasFoundSomething(t *testing.T) {
	if findings.all < 4 {
		t.Skip("not all tests that plant defects were run before, as -run or -only wanted it")
	}
	for _, inv := range invariant.All() {
		switch found := findings.names[inv.Name]; {
		// Nobody asks for OpenAPI in the simulator, and seldom for the document of a group that not
		// all serve: histories made by hand prove those.
		// There are no controllers and no informers in the simulator, and no etcd: histories made by hand,
		// and real runs, prove those about them.
		case slices.Contains([]string{
			"OpenAPIDescribes", "GroupVersionsDescribed", "NoWrongfulDeletion", "NothingLeftBehind", "OrphansCollected", "DeletionEnds", "QuotaFollows",
			"NoLostEvents", "NoFieldLost",
		}, inv.Name):
			if found {
				t.Errorf("%s has found a mutant: it needs no exemption", inv.Name)
			}
		case !found:
			t.Errorf("%s has found no mutant", inv.Name)
		}
	}
}
