package e2e

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// inScenarios are the planted defects for which a scenario is made. A campaign does not look for
// them: it sends no crowd, runs no server without the proxy, and lets a server that ends start
// again.
var inScenarios = map[string]struct{ scenario, invariant string }{
	"seats-of-all-callers":    {"crowds", "Isolation"},
	"leavers-given-up":        {"drain", "Available"},
	"dead-peers-waited-for":   {"peer-pause", "UnavailableOnPeerFailure"},
	"address-never-withdrawn": {"last-peer-leaves", "TrueNotFound"},
	"plain-servers-not-found": {"gate-rollout", "NoFalseNotFound"},
}

// A scenario shows the defect for which it is made, and without the defect its invariant holds.
func TestDefectsInScenarios(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	for _, defect := range slices.Sorted(maps.Keys(inScenarios)) {
		of := inScenarios[defect]
		for with, want := range map[string]invariant.Outcome{"without": invariant.OutcomePass, "with": invariant.OutcomeFail} {
			t.Run(of.scenario+" "+with+" "+defect, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				var output bytes.Buffer
				words := []string{"run", of.scenario, "--subject", "reference", "--out", dir}
				if with == "with" {
					words = append(words, withDefect(t, defect)...)
				}
				code := exitCode(t, command(t, &output, words...).Run())
				report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
				if err != nil {
					t.Fatalf("exit code %d: %v\n%s", code, err, &output)
				}
				v := verdict(t, report, of.invariant)
				if v.Outcome != want {
					t.Errorf("%s: %s (%s), want %s\n%s", of.invariant, v.Outcome, v.Reason, want, &output)
				}
				for _, e := range v.Evidence {
					t.Log(e.Sentence) // for a person to see that it is because of the defect
				}
			})
		}
	}
}
