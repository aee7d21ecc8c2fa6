package proxy

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"
)

// core are the files in which every answer is a function of the arguments.
var core = []string{"resource.go", "policy.go", "presets.go", "event.go", "decision.go", "table.go", "observe.go", "extensions.go", "decide.go"}

// TestCoreIsPure forbids in the core what would make a replay differ from the run: the clock, goroutines, channels, random numbers and
// the order of maps.
func TestCoreIsPure(t *testing.T) {
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range core {
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	for _, problem := range impurities(files, parsed) {
		t.Error(problem)
	}
}

// TestImpuritiesAreFound gives the check above something to find.
func TestImpuritiesAreFound(t *testing.T) {
	const impure = `package proxy
import ("math/rand"; "time")
func f(m map[string]int, c chan int) {
	go f(nil, nil)
	select {}
	for range m {}
	_ = time.Now()
	_ = rand.Int()
}`
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "impure.go", impure, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := impurities(files, []*ast.File{f}); len(got) != 5 {
		t.Errorf("found %q, want five: an import, a goroutine, a select, a map's order, the clock", got)
	}
}

func impurities(files *token.FileSet, parsed []*ast.File) (found []string) {
	report := func(n ast.Node, what string) { found = append(found, files.Position(n.Pos()).String()+": "+what) }
	// Types of other packages are not needed: whether something is a map is said in the core itself.
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = config.Check("proxy", files, parsed, info)
	for _, f := range parsed {
		for _, i := range f.Imports {
			switch i.Path.Value {
			case `"math/rand"`, `"math/rand/v2"`, `"crypto/rand"`, `"sync"`, `"sync/atomic"`:
				report(i, "imports "+i.Path.Value)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n, "starts a goroutine")
			case *ast.SelectStmt:
				report(n, "selects")
			case *ast.RangeStmt:
				if t := info.Types[n.X].Type; t != nil {
					if _, ok := t.Underlying().(*types.Map); ok {
						report(n, "depends on the order of a map")
					}
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" {
					switch n.Sel.Name {
					case "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick":
						report(n, "looks at the clock: time."+n.Sel.Name)
					}
				}
			}
			return true
		})
	}
	return found
}

// nothing imports nothing.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }
