package workload

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/purity"
)

// If a chooser read the clock, or depended on the order of a map, its second run would choose other
// requests.
func TestTheChooserIsPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found, err := purity.Check(slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range found {
		t.Error(problem)
	}
}
