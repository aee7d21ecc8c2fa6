package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The race detector runs in continuous integration on packages that start goroutines only. A list
// that forgets one would hide its races.
func TestTheRaceDetectorSeesAllGoroutines(t *testing.T) {
	const root = "../.."
	var starts []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err == nil && startsGoroutines(t, string(content)) {
			starts = append(starts, "./"+dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(starts)
	list, err := os.ReadFile(filepath.Join(root, ".ci/race-packages"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(list)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			listed = append(listed, words[0])
		}
	}
	if starts = slices.Compact(starts); !slices.Equal(listed, starts) {
		t.Errorf(".ci/race-packages lists\n%s\nbut these packages start goroutines, sorted by name:\n%s", strings.Join(listed, "\n"), strings.Join(starts, "\n"))
	}
}

// startsGoroutines reports whether source has a go statement, or calls a function whose name says
// that it starts a goroutine, such as errgroup's Go.
func startsGoroutines(t *testing.T, source string) (starts bool) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			starts = starts || ok && slices.Contains([]string{"Go", "TryGo", "AfterFunc"}, called.Sel.Name)
		}
		return true
	})
	return starts
}

func TestStartsOfGoroutinesAreFound(t *testing.T) {
	for body, want := range map[string]bool{
		"go f()": true, "g.Go(f)": true, "if g.TryGo(f) { }": true, "defer context.AfterFunc(ctx, f)()": true, "f()": false, "Go()": false, "x.Gone()": false,
	} {
		if got := startsGoroutines(t, "package p\nfunc h() { "+body+" }"); got != want {
			t.Errorf("%s starts a goroutine: %t, want %t", body, got, want)
		}
	}
}
