package suite

import (
	"testing"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
)

// If a pair cannot be run, its cells say so, and nothing is fetched for it.
func TestABadPairIsNoHarmToTheOthers(t *testing.T) {
	m := Matrix{
		Spec: run.Spec{Backend: scenario.BackendLocal}, Scenarios: []string{"quiet"}, Subjects: []string{scenario.SubjectReference},
		Pairs: []string{"v1.36.x..v1.37.1", "v1.36.3..v1.37.1"},
	}
	pairs, err := m.versionPairs()
	if err != nil {
		t.Fatal(err)
	}
	cells, err := m.cells(pairs)
	if err != nil {
		t.Fatal(err)
	}
	if plans := plansOf(cells); len(cells) != 2 || len(plans) != 1 || plans[0].Spec.From != "v1.36.3" {
		t.Errorf("%d cells, of which %d can be run, want the good pair", len(cells), len(plans))
	}
}

// Every pair of the matrix can be run with the default subjects and scenarios, on the two backends
// that need only the machine.
func TestEveryPairOfTheMatrixCanBeRun(t *testing.T) {
	for _, backend := range []string{scenario.BackendLocal, scenario.BackendSim} {
		m := Matrix{Spec: run.Spec{Backend: backend}, Scenarios: MatrixScenarios, Subjects: scenario.Subjects, Pairs: MatrixPairs()}
		pairs, err := m.versionPairs()
		if err != nil {
			t.Fatal(err)
		}
		cells, err := m.cells(pairs)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			if c.plan == nil {
				t.Errorf("%s, %s, %s, %s: %s", backend, pairs[c.Pair], c.Subject, c.Scenario, c.Core.Reason)
			}
		}
	}
}
