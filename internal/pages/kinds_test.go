package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	wholePage = regexp.MustCompile(`(?i)<!doctype html>`)
	eyebrow   = regexp.MustCompile(`<p class="eyebrow">([^<]+)</p>`)
)

// A kind of page is a template of a whole page. Each has a golden file, which TestPages opens.
func TestEveryKindOfPageIsOpened(t *testing.T) {
	opened := map[string]bool{}
	for _, file := range goldenPages(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := eyebrow.FindSubmatch(content); found != nil {
			opened[string(found[1])] = true
		}
	}
	kinds := 0
	err := filepath.WalkDir("../../reports/assets", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tmpl" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || !wholePage.Match(content) {
			return err
		}
		kinds++
		if found := eyebrow.FindSubmatch(content); found == nil || !opened[string(found[1])] {
			t.Errorf("%s: no golden file is a page of it, so no test opens one", path)
		}
		return nil
	})
	if err != nil || kinds < 5 {
		t.Errorf("found %d kinds of pages, want at least 5; error %v", kinds, err)
	}
}
