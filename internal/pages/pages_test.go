package pages

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// goldenPages are the golden files that are pages: what the code writes now. Those that
// internal/pages/made makes are as long, and have as many charts, marks and tables, as the pages
// that people get.
func goldenPages(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../../reports/testdata/*.html", "../../internal/upgrade/testdata/*.html", "testdata/made/*.html"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no page; error %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

func TestPages(t *testing.T) {
	for _, file := range goldenPages(t) {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			mustHold(t, path)
		})
	}
}

// mustHold fails the test for all that is wrong with a page.
func mustHold(t *testing.T, file string) {
	t.Helper()
	found := inspect(t, file, all, true)
	for _, check := range slices.Sorted(maps.Keys(found)) {
		for n, complaint := range found[check] {
			if n == 12 {
				t.Errorf("%s: and %d more", check, len(found[check])-n)
				break
			}
			t.Errorf("%s: %s", check, complaint)
		}
	}
}
