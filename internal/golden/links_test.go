package golden

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`) // what GitHub leaves out of the anchor of a heading
)

// Every link of a Markdown file to a file of this repository leads to one, and to a heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	checked := 0
	for _, path := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text(t, path), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			if trouble := follow(t, path, m[1]); trouble != "" {
				t.Errorf("%s: link to %s: %s", path, m[1], trouble)
			}
		}
	}
	if checked < 200 {
		t.Errorf("%d links were checked, want at least 200", checked)
	}
}

// files returns the files of the repository whose names end in ext. It leaves out testdata, where
// documents are expected output, and what make and git write.
func files(t *testing.T, ext string) (all []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), "_out") || slices.Contains([]string{".git", "bin", "testdata"}, entry.Name())):
			return fs.SkipDir
		case filepath.Ext(path) == ext:
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFollow(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# One `two`: three\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, leads := range map[string]bool{
		"page.md": true, "#one-two-three": true, "page.md#one-two-three": true, "#one-two": false, "other.md": false, "other.md#one-two-three": false,
	} {
		if trouble := follow(t, page, target); (trouble == "") != leads {
			t.Errorf("%s: %q, want it to lead somewhere: %v", target, trouble, leads)
		}
	}
}

// follow returns what is wrong with a relative link in a page, or "".
func follow(t *testing.T, page, target string) string {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	to := page
	if file != "" {
		to = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(to); err != nil {
		return "there is no such file"
	}
	if anchor == "" || filepath.Ext(to) != ".md" {
		return ""
	}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text(t, to), ""), -1) {
		if anchorOf(m[1]) == anchor {
			return ""
		}
	}
	return "the file has no such heading"
}

// anchorOf is the anchor that GitHub gives a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(strings.ToLower(dropped.ReplaceAllString(heading, "")), " ", "-")
}

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
