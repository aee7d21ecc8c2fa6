// Package golden holds files that are kept in the repository to what makes them: pages made from a catalogue, and answers of code that people have looked at. It is
// for tests, which with -update write the files anew.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the files anew that tests hold to what makes them")

// Hold fails the test if the file at path, which is relative to the package's directory, is not what was made. With -update it writes the file first, and its directory
// where that is missing.
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
		t.Errorf("%s is not what was made; if that is meant, run %s with -update and look at the change (-kept +made):\n%s", path, t.Name(), diff)
	}
}
