package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// witness records whether a test would have failed.
type witness struct {
	testing.TB
	failed bool
}

func (w *witness) Errorf(string, ...any) { w.failed = true }

func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept", "page.md")
	defer func(was bool) { *update = was }(*update)
	*update = true
	Hold(t, path, "one\n")
	*update = false
	Hold(t, path, "one\n")
	w := &witness{TB: t}
	if Hold(w, path, "two\n"); !w.failed {
		t.Error("no error for a file that differs")
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "one\n" {
		t.Errorf("without -update the file was changed: %q, %v", kept, err)
	}
}
