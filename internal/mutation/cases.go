package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A block is a part of a file, from a line and column to another, that was run.
type block struct{ line, column, endLine, endColumn int }

func (b block) contains(p token.Position) bool {
	after := p.Line > b.line || p.Line == b.line && p.Column >= b.column
	before := p.Line < b.endLine || p.Line == b.endLine && p.Column <= b.endColumn
	return after && before
}

var profileLine = regexp.MustCompile(`(?m)^(.+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// coverCases adds the expressions of cases to a coverage profile of the package in dir, for those
// switch statements that were run. Go's profiles have no block for them, and gremlins would not
// test any mutant of a switch that has conditions for cases.
func coverCases(profile, dir string) error {
	data, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	ran := map[string][]block{} // by the name of the file in the profile
	for _, match := range profileLine.FindAllStringSubmatch(string(data), -1) {
		var n [5]int
		for i := range n {
			if n[i], err = strconv.Atoi(match[i+2]); err != nil {
				return fmt.Errorf("read the coverage profile: %w", err)
			}
		}
		if n[4] > 0 {
			ran[match[1]] = append(ran[match[1]], block{n[0], n[1], n[2], n[3]})
		}
	}
	var added strings.Builder
	for name, blocks := range ran {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(dir, path.Base(name)), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SwitchStmt)
			if !ok || !anyContains(blocks, fset.Position(s.Switch)) {
				return true
			}
			for _, clause := range s.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					from, to := fset.Position(e.Pos()), fset.Position(e.End())
					fmt.Fprintf(&added, "%s:%d.%d,%d.%d 1 1\n", name, from.Line, from.Column, to.Line, to.Column)
				}
			}
			return true
		})
	}
	return os.WriteFile(profile, append(data, added.String()...), 0o600)
}

func anyContains(blocks []block, p token.Position) bool {
	for _, b := range blocks {
		if b.contains(p) {
			return true
		}
	}
	return false
}
