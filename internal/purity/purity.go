// Package purity finds in source code what would make a replay differ from the run: the clock,
// goroutines, channels, random numbers and the order of maps. It is for tests of packages whose
// results must depend on their arguments only.
package purity

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
)

// anyOrder must be in a comment in the line of a loop over a map, if the order does not matter.
const anyOrder = "in any order"

// Check reads the files of one package and returns what it finds, each with its place. It does not
// know types of other packages, so it does not recognise a map whose type is declared in one.
func Check(files ...string) (found []string, err error) {
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("look for impurities: %w", err)
		}
		parsed = append(parsed, f)
	}
	report := func(n ast.Node, what string) { found = append(found, set.Position(n.Pos()).String()+": "+what) }
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = config.Check("checked", set, parsed, info)
	for _, f := range parsed {
		excused := map[int]bool{}
		for _, group := range f.Comments {
			for _, c := range group.List {
				excused[set.Position(c.Pos()).Line] = strings.Contains(c.Text, anyOrder)
			}
		}
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
			case *ast.SendStmt:
				report(n, "sends on a channel")
			case *ast.RangeStmt:
				if t := info.Types[n.X].Type; t != nil && !excused[set.Position(n.Pos()).Line] {
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
	return found, nil
}

// nothing is an importer without packages.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }
