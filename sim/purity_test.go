package sim

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/purity"
)

// TestTheSimulatorIsPure forbids in the simulator, and in the schedules and rosters of package peers that it runs, what would make a replay
// differ from the run.
func TestTheSimulatorIsPure(t *testing.T) {
	packages := map[string][]string{"peers": {"../proxy/peers/schedule.go", "../proxy/peers/queue.go", "../proxy/peers/roster.go"}}
	for _, dir := range []string{".", "tape", "vtime"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				packages[dir] = append(packages[dir], f)
			}
		}
	}
	for name, files := range packages {
		found, err := purity.Check(files...)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range found {
			t.Errorf("%s: %s", name, problem)
		}
	}
}
