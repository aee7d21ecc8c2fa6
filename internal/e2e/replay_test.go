package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// Schedules that the simulator found must break real kube-apiservers in the same way, by the same
// few steps.
func TestFindingsOfTheSimulatorOnRealProcesses(t *testing.T) {
	for name, smoke := range map[string]bool{
		"false-404-after-unrelated-restart": false, "ready-but-false-404": false, "no-failover": false, "custom-resource-order": true,
		"custom-resource-hides-built-in": false, "versions-out-of-order": false,
	} {
		t.Run(name, func(t *testing.T) {
			if !smoke {
				onlyWithAll(t)
			}
			file := filepath.Join("testdata", "repro", name+".json")
			seen := run(t, "replay", file)
			if seen.code != fail || !strings.Contains(seen.output, "in the same way as in the file") {
				t.Fatalf("in the simulator: exit code %d, output:\n%s", seen.code, seen.output)
			}
			needsCluster(t)
			dir := filepath.Join(t.TempDir(), "run")
			r := run(t, "replay", file, "--backend", "local", "--out", dir)
			t.Logf("%s: exit code %d\n%s", name, r.code, r.output)
			if r.code != fail || !strings.Contains(r.output, "in the same way as in the file") {
				t.Errorf("on real processes it is not violated in the same way")
			}
			report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Faults {
				if !f.Evidence.Effective {
					t.Errorf("fault %d, %s, had no effect", f.ID, f.Detail)
				}
			}
		})
	}
}
