package e2e

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// inScenarios are the planted defects that one scenario shows: by which invariant, and a part of
// what the evidence must say. A campaign does not look for them.
var inScenarios = map[string]struct{ scenario, invariant, says string }{
	"seats-of-all-callers":    {"crowds", "Isolation", "beside another caller's"},
	"leavers-given-up":        {"drain", "Available", "also while it was stopping"},
	"dead-peers-waited-for":   {"peer-pause", "UnavailableOnPeerFailure", "gave no answer"},
	"address-never-withdrawn": {"last-peer-leaves", "TrueNotFound", "answered 503"},
	"plain-servers-not-found": {"gate-rollout", "NoFalseNotFound", "answered 404"},
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
				says := func(e reports.Evidence) bool { return strings.Contains(e.Cause+" "+e.Sentence, of.says) }
				if want == invariant.OutcomeFail && !slices.ContainsFunc(v.Evidence, says) {
					t.Errorf("no evidence says %q: %+v", of.says, v.Evidence)
				}
			})
		}
	}
}
