package purity

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackagesImportOnlyRowsBelow compares the table of packages in ARCHITECTURE.md with the
// imports: a package imports only packages in rows below its own. Programs for images (package main
// below kindconfigs/image) need no row.
func TestPackagesImportOnlyRowsBelow(t *testing.T) {
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	name := regexp.MustCompile("`([a-z0-9/…]+)`")
	for line := range strings.Lines(string(page)) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && strings.HasPrefix(line, "| `") {
			for _, found := range name.FindAllStringSubmatch(first, -1) {
				rows = append(rows, found[1])
			}
		}
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "../../...")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	const module = "github.com/skewproof/skewproof/"
	edges := 0
	for line := range strings.Lines(string(out)) {
		packages := strings.Fields(line)
		user := strings.TrimPrefix(packages[0], module)
		at := slices.Index(rows, user)
		if at < 0 {
			if !strings.HasPrefix(user, "kindconfigs/image/") {
				t.Errorf("%s has no row in ARCHITECTURE.md", user)
			}
			continue
		}
		for _, p := range packages[1:] {
			used, ours := strings.CutPrefix(p, module)
			if !ours {
				continue
			}
			edges++
			if slices.Index(rows, used) < at {
				t.Errorf("%s imports %s, which is in a row above it, or in none", user, used)
			}
		}
	}
	if edges < 50 {
		t.Errorf("found only %d imports: the list cannot be right", edges)
	}
}
