// Package golden compares files in the repository with the output of the code: pages of a
// catalogue, and reviewed answers of code. It is for tests, which write the files with -update.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

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

// Columns is the width to which prose is wrapped in documents.
const Columns = 100

// marksAList is a word that would begin a list or a heading if it were the first word of a line.
var marksAList = regexp.MustCompile(`^([-+*]|#+|[0-9]+[.)])$`)

// Wrap breaks the words of a text into lines of at most [Columns] columns, if no word is longer. It
// puts indent before all lines except the first.
func Wrap(text, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > Columns && !marksAList.MatchString(word):
			b.WriteString("\n" + indent)
			column = utf8.RuneCountInString(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
