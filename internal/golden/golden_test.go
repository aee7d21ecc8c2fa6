package golden

import (
	"os"
	"path/filepath"
	"strings"
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

func TestWrap(t *testing.T) {
	word := strings.Repeat("ü", 49)
	for text, want := range map[string]string{
		"":                               "",
		"one\n\n\ttwo":                   "one two",
		word + " " + word + " x":         word + " " + word + "\n  x", // 99 and 101 columns
		word + " " + word + "y x":        word + " " + word + "y\n  x",
		word + " " + word + "yy x":       word + "\n  " + word + "yy x",
		word + " " + word + "y - x":      word + " " + word + "y -\n  x", // no list begins
		word + " " + word + "y 2. x":     word + " " + word + "y 2.\n  x",
		strings.Repeat("z", 120) + " z":  strings.Repeat("z", 120) + "\n  z",
		"a " + strings.Repeat("z", 120):  "a\n  " + strings.Repeat("z", 120),
		word + " " + word + "y --flag x": word + " " + word + "y\n  --flag x",
	} {
		if got := Wrap(text, "  "); got != want {
			t.Errorf("%q is wrapped as %q, want %q", text, got, want)
		}
	}
}
