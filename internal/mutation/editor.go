package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// editor puts switches into one file. Its edits are insertions at offsets, so that the rest of the
// file, such as a //go:embed line, stays as it is.
type editor struct {
	base    int
	name    string
	source  string
	fset    *token.FileSet
	checked *types.Package
	info    *types.Info
	next    number
	numbers map[mutant]number
	indexes map[int]int // offset → index of the token
	edits   []edit
}

// An edit replaces length bytes at an offset. Edits at the same offset are applied in their order:
// what closes an expression before what opens one, outer before inner where they open, inner before
// outer where they close.
type edit struct {
	offset, length int
	closes         bool
	depth          int
	text           string
}

func (e *editor) at(p token.Pos) int { return int(p) - e.base }

func (e *editor) textOf(n ast.Node) string { return e.source[e.at(n.Pos()):e.at(n.End())] }

// number gives the mutant that replaces the operator at p a number.
func (e *editor) number(p token.Pos, now token.Token) number {
	n := e.next
	e.next++
	e.numbers[mutant{e.name, e.indexes[e.at(p)], now.String()}] = n
	return n
}

func (e *editor) insert(n ast.Node, before, after string) {
	depth := int(n.End() - n.Pos())
	e.edits = append(e.edits, edit{offset: e.at(n.Pos()), depth: -depth, text: before},
		edit{offset: e.at(n.End()), closes: true, depth: depth, text: after})
}

func (e *editor) operator(p token.Pos, old token.Token, text string) {
	e.edits = append(e.edits, edit{offset: e.at(p), length: len(old.String()), text: text})
}

func (e *editor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.ArrayType: // the length is a constant
		return n.Len == nil
	case *ast.IncDecStmt:
		now := replacements[n.Tok][0]
		operand := e.textOf(n.X)
		e.insert(n, fmt.Sprintf("func() { if mutantIs(%d) { %s%s } else { ", e.number(n.TokPos, now), operand, now), " } }()")
	case *ast.UnaryExpr:
		if n.Op != token.SUB {
			break
		}
		if e.info.Types[n].Value != nil {
			e.constant(n, n.OpPos, n.Op, token.ADD)
		} else if e.isNumber(n) {
			e.operator(n.OpPos, n.Op, fmt.Sprintf("mutantNeg(%d, ", e.number(n.OpPos, token.ADD)))
			e.edits = append(e.edits, edit{offset: e.at(n.End()), closes: true, depth: int(n.End() - n.Pos()), text: ")"})
		}
	case *ast.BinaryExpr:
		e.binary(n)
	}
	return true
}

func (e *editor) binary(n *ast.BinaryExpr) {
	now := replacements[n.Op]
	if now == nil {
		return
	}
	if e.info.Types[n].Value != nil {
		if len(now) == 1 {
			e.constant(n, n.OpPos, n.Op, now[0])
		}
		return
	}
	switch n.Op {
	case token.LAND, token.LOR:
		if !e.isBool(n) {
			return
		}
		e.insert(n, fmt.Sprintf("%s(%d, ", functions[n.Op], e.number(n.OpPos, now[0])), ") })")
		e.operator(n.OpPos, n.Op, ", func() bool { return (")
	case token.EQL, token.NEQ:
		e.insert(n, "((", fmt.Sprintf(") != mutantIs(%d))", e.number(n.OpPos, now[0])))
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !e.isBool(n) || e.isUntyped(n.X) && e.isUntyped(n.Y) {
			return
		}
		e.insert(n, fmt.Sprintf("%s(%d, %d, ", functions[n.Op], e.number(n.OpPos, now[0]), e.number(n.OpPos, now[1])), ")")
		e.operator(n.OpPos, n.Op, ",")
	default:
		if e.isString(n) {
			e.numbers[mutant{e.name, e.indexes[e.at(n.OpPos)], now[0].String()}] = notViable
			return
		}
		if !e.isNumber(n) {
			return
		}
		e.insert(n, fmt.Sprintf("%s(%d, ", functions[n.Op], e.number(n.OpPos, now[0])), ")")
		e.operator(n.OpPos, n.Op, ",")
	}
}

// constant puts a switch around a constant expression that is not in the declaration of a constant.
// It leaves those alone whose type it cannot write down.
func (e *editor) constant(n ast.Expr, p token.Pos, old, now token.Token) {
	text := e.textOf(n)
	at := e.at(p) - e.at(n.Pos())
	other := text[:at] + now.String() + text[at+len(old.String()):]
	natural, err := types.Eval(e.fset, e.checked, n.Pos(), text)
	if err != nil || e.isUntyped(n) {
		return
	}
	instance := ""
	if basic, ok := e.info.TypeOf(n).(*types.Basic); ok {
		instance = "[" + basic.Name() + "]"
	} else if b, ok := natural.Type.(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		return // of a named type because of what is around it
	}
	if _, err := types.Eval(e.fset, e.checked, n.Pos(), strings.Trim(instance, "[]")+"("+other+")"); err != nil {
		e.numbers[mutant{e.name, e.indexes[e.at(p)], now.String()}] = notViable
		return
	}
	e.insert(n, fmt.Sprintf("mutantPick%s(%d, ", instance, e.number(p, now)), ", "+other+")")
}

// isNumber tells whether x is of a numeric type and no constant.
func (e *editor) isNumber(x ast.Expr) bool {
	basic, ok := e.info.TypeOf(x).Underlying().(*types.Basic)
	return ok && e.info.Types[x].Value == nil && basic.Info()&(types.IsInteger|types.IsFloat) != 0 && basic.Info()&types.IsUntyped == 0
}

// isBool tells whether x is of the type bool itself, which the functions of runtime return.
func (e *editor) isBool(x ast.Expr) bool {
	t := e.info.TypeOf(x)
	return t == types.Typ[types.Bool] || t == types.Typ[types.UntypedBool]
}

func (e *editor) isUntyped(x ast.Expr) bool {
	basic, ok := e.info.TypeOf(x).(*types.Basic)
	return ok && basic.Info()&types.IsUntyped != 0
}

func (e *editor) isString(x ast.Expr) bool {
	basic, ok := e.info.TypeOf(x).Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// text is the source with all edits.
func (e *editor) text() string {
	slices.SortStableFunc(e.edits, func(a, b edit) int {
		switch {
		case a.offset != b.offset:
			return a.offset - b.offset
		case a.closes != b.closes && a.closes:
			return -1
		case a.closes != b.closes:
			return 1
		default:
			return a.depth - b.depth
		}
	})
	var out strings.Builder
	done := 0
	for _, edit := range e.edits {
		out.WriteString(e.source[done:edit.offset] + edit.text)
		done = edit.offset + edit.length
	}
	out.WriteString(e.source[done:])
	return out.String()
}
