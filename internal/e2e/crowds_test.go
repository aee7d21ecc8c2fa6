package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// crowdDefect is the planted defect that a crowd shows.
const crowdDefect = "seats-of-all-callers"

// The reference keeps callers apart. If all callers share a number of seats, those beside a crowd
// wait for it.
func TestCrowds(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	for defect, want := range map[string]invariant.Outcome{"": invariant.OutcomePass, crowdDefect: invariant.OutcomeFail} {
		t.Run("defect "+defect, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			var output bytes.Buffer
			words := []string{"run", "crowds", "--subject", "reference", "--out", dir}
			if defect != "" {
				words = append(words, withDefect(t, defect)...)
			}
			code := exitCode(t, command(t, &output, words...).Run())
			report, err := reports.Read(filepath.Join(dir, "report.json"))
			if err != nil {
				t.Fatalf("exit code %d: %v\n%s", code, err, &output)
			}
			v := verdict(t, report, "Isolation")
			if v.Outcome != want {
				t.Errorf("Isolation: %s (%s), want %s\n%s", v.Outcome, v.Reason, want, &output)
			}
			if want == invariant.OutcomeFail && (len(v.Evidence) == 0 || !strings.Contains(v.Evidence[0].Cause, "beside another caller's")) {
				t.Errorf("evidence %+v", v.Evidence)
			}
		})
	}
}
