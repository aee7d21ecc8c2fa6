package proxy

import (
	"testing"

	"github.com/skewproof/skewproof/internal/purity"
)

// core lists the files in which every result depends on the arguments alone.
var core = []string{"resource.go", "policy.go", "switch.go", "presets.go", "event.go", "decision.go", "table.go", "observe.go", "extensions.go", "decide.go"}

// TestCoreIsPure forbids everything in the core that would make a replay differ from the run.
func TestCoreIsPure(t *testing.T) {
	found, err := purity.Check(core...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range found {
		t.Error(problem)
	}
}
