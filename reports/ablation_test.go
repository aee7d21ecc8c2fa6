package reports

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/skewproof/skewproof/sim/search"
)

func TestAnAblationIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	if err := WriteAblation(dir, &search.Ablation{}); err != nil {
		t.Fatal(err)
	}
	names := []string{"ablation.txt", "ablation.md", "ablation.json"}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := WriteAblation("/dev/null/there", &search.Ablation{}); err == nil {
		t.Error("no error where no directory can be")
	}
	blocked := t.TempDir()
	if err := os.MkdirAll(filepath.Join(blocked, "ablation.txt", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteAblation(blocked, &search.Ablation{}); err == nil {
		t.Error("no error where the text cannot be")
	}
	for _, name := range names[1:] {
		if _, err := os.Stat(filepath.Join(blocked, name)); err == nil {
			t.Errorf("%s was written all the same", name)
		}
	}
}
