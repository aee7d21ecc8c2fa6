package sim

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/purity"
)

// TestTheSimulatorIsPure forbids what would make a replay differ from the run: in the simulator,
// and in what the simulator runs of other packages, which are the schedules and rosters of package
// peers, and the executor of steps with its account.
func TestTheSimulatorIsPure(t *testing.T) {
	packages := map[string][]string{"peers": {"../proxy/peers/schedule.go", "../proxy/peers/queue.go", "../proxy/peers/roster.go"}, "scenario": {"../internal/scenario/state.go"}}
	for _, dir := range []string{".", "tape", "vtime", "../internal/step"} {
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
