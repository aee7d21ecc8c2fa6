package proxy

import (
	"testing"

	"github.com/skewproof/skewproof/internal/purity"
)

// core are the files in which every answer is a function of the arguments.
var core = []string{"resource.go", "policy.go", "presets.go", "event.go", "decision.go", "table.go", "observe.go", "extensions.go", "decide.go"}

// TestCoreIsPure forbids in the core what would make a replay differ from the run.
func TestCoreIsPure(t *testing.T) {
	found, err := purity.Check(core...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range found {
		t.Error(problem)
	}
}
