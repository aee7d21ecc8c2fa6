package sim

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/purity"
)

// TestTheSimulatorIsPure forbids code that could make a replay differ from the run. It checks the
// simulator and the code of other packages that the simulator runs: the schedules and rosters of
// package peers, and the step executor with its state.
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
