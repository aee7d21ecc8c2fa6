// Package golden compares files in the repository with the output of the code: pages of a
// catalogue, and reviewed answers of code. It is for tests, which write the files with -update.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// Hold fails the test if the file at path, relative to the package's directory, differs from made.
// With -update it writes the file first, and its directory if that is missing.
func Hold(t testing.TB, path, made string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), made); diff != "" {
		t.Errorf("%s is out of date; if the change is intended, run %s with -update and review it (-kept +made):\n%s", path, t.Name(), diff)
	}
}
