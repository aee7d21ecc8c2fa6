package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is one operator of a file replaced by another.
type mutant struct {
	File  string // its base name
	Token int    // the index of the operator among the file's tokens, semicolons not counted
	Now   string // the operator that replaces it
}

// A number selects a mutant of a switched test binary.
type number int

// notViable is the number of a mutant that the compiler refuses, such as the difference of two strings.
const notViable number = -1

// switched is a package in which every mutant of a kind listed in replacements can be switched on by
// the environment variable variable. A mutant without a number has to be built by itself.
type switched struct {
	Dir     string
	Files   map[string]string // base name → source with switches
	Numbers map[mutant]number
}

// variable selects the mutant in the environment of a switched test binary.
const variable = "SKEWPROOF_MUTANT"

// replacements are the operators that gremlins puts in the place of others (its
// internal/engine/mappings.go), for those kinds of mutants that runs ask for.
var replacements = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// runtime is added to a switched package. Every operand is evaluated exactly as often as without the
// switch.
const runtime = `package %s

import (
	"cmp"
	"os"
	"strconv"
)

var mutantOn = func() int { n, _ := strconv.Atoi(os.Getenv(%q)); return n }()

func mutantIs(n int) bool { return n == mutantOn }

func mutantAnd(n int, x bool, y func() bool) bool {
	if mutantIs(n) {
		return x || y()
	}
	return x && y()
}

func mutantOr(n int, x bool, y func() bool) bool {
	if mutantIs(n) {
		return x && y()
	}
	return x || y()
}

func mutantLss[T cmp.Ordered](boundary, negation int, x, y T) bool {
	if mutantIs(boundary) {
		return x <= y
	}
	return (x < y) != mutantIs(negation)
}

func mutantLeq[T cmp.Ordered](boundary, negation int, x, y T) bool {
	if mutantIs(boundary) {
		return x < y
	}
	return (x <= y) != mutantIs(negation)
}

func mutantGtr[T cmp.Ordered](boundary, negation int, x, y T) bool {
	if mutantIs(boundary) {
		return x >= y
	}
	return (x > y) != mutantIs(negation)
}

func mutantGeq[T cmp.Ordered](boundary, negation int, x, y T) bool {
	if mutantIs(boundary) {
		return x > y
	}
	return (x >= y) != mutantIs(negation)
}

func mutantPick[T any](n int, x, y T) T {
	if mutantIs(n) {
		return y
	}
	return x
}

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutantNumber interface{ mutantInteger | ~float32 | ~float64 }

func mutantAdd[T mutantNumber](n int, x, y T) T {
	if mutantIs(n) {
		return x - y
	}
	return x + y
}

func mutantSub[T mutantNumber](n int, x, y T) T {
	if mutantIs(n) {
		return x + y
	}
	return x - y
}

func mutantMul[T mutantNumber](n int, x, y T) T {
	if mutantIs(n) {
		return x / y
	}
	return x * y
}

func mutantQuo[T mutantNumber](n int, x, y T) T {
	if mutantIs(n) {
		return x * y
	}
	return x / y
}

func mutantRem[T mutantInteger](n int, x, y T) T {
	if mutantIs(n) {
		return x * y
	}
	return x %% y
}

func mutantNeg[T mutantNumber](n int, x T) T {
	if mutantIs(n) {
		return x
	}
	return -x
}
`

// functions are those of runtime, by the operator that they stand for.
var functions = map[token.Token]string{
	token.LAND: "mutantAnd", token.LOR: "mutantOr",
	token.LSS: "mutantLss", token.LEQ: "mutantLeq", token.GTR: "mutantGtr", token.GEQ: "mutantGeq",
	token.ADD: "mutantAdd", token.SUB: "mutantSub", token.MUL: "mutantMul", token.QUO: "mutantQuo", token.REM: "mutantRem",
}

// putSwitches reads the package in dir and puts switches around its operators.
func putSwitches(goCommand, dir string) (switched, error) {
	var names []string
	exports := map[string]string{}
	list := exec.Command(goCommand, "list", "-export", "-deps", "-f",
		`{{if .DepOnly}}{{.ImportPath}} {{.Export}}{{else}}{{range .GoFiles}}. {{.}}{{"\n"}}{{end}}{{end}}`, ".")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return switched{}, fmt.Errorf("list what the package in %s imports: %w", dir, withStderr(err))
	}
	for line := range strings.Lines(string(out)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == "." {
			names = append(names, value)
		} else if ok {
			exports[name] = value
		}
	}
	fset := token.NewFileSet()
	var files []*ast.File
	sources := map[*ast.File]string{}
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return switched{}, err
		}
		file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
		if err != nil {
			return switched{}, err
		}
		files, sources[file] = append(files, file), string(source)
	}
	if len(files) == 0 {
		return switched{}, fmt.Errorf("no Go files in %s", dir)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	checked, err := config.Check(dir, fset, files, info)
	if err != nil {
		return switched{}, fmt.Errorf("check the types of the package in %s: %w", dir, err)
	}
	s := switched{Dir: dir, Files: map[string]string{"mutant_switches.go": fmt.Sprintf(runtime, files[0].Name.Name, variable)},
		Numbers: map[mutant]number{}}
	next := number(1)
	for _, file := range files {
		name := fset.File(file.Package).Name()
		e := editor{base: fset.File(file.Package).Base(), name: name, source: sources[file], fset: fset, checked: checked, info: info,
			next: next, numbers: s.Numbers,
			indexes: map[int]int{}}
		for index, t := range tokensOf(sources[file]) {
			e.indexes[t.offset] = index
		}
		ast.Inspect(file, e.visit)
		s.Files[name], next = e.text(), e.next
	}
	return s, nil
}

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
	e.edits = append(e.edits, edit{offset: e.at(n.Pos()), depth: -depth, text: before}, edit{offset: e.at(n.End()), closes: true, depth: depth, text: after})
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

// A lexeme is a token of a file.
type lexeme struct {
	offset int
	kind   token.Token
	text   string
}

// tokensOf returns the tokens of a source without semicolons, since a printer may move line ends.
func tokensOf(source string) []lexeme {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), func(token.Position, string) {}, 0)
	var out []lexeme
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return out
		}
		if kind != token.SEMICOLON {
			out = append(out, lexeme{file.Offset(pos), kind, text})
		}
	}
}

// difference finds the one token that differs between two sources.
func difference(name, before, after string) (mutant, error) {
	a, b := tokensOf(before), tokensOf(after)
	if len(a) != len(b) {
		return mutant{}, fmt.Errorf("%s has %d tokens, and %d with the mutant", name, len(a), len(b))
	}
	var found []mutant
	for i := range a {
		if a[i].kind != b[i].kind || a[i].text != b[i].text {
			found = append(found, mutant{name, i, b[i].kind.String()})
		}
	}
	if len(found) != 1 {
		return mutant{}, fmt.Errorf("%s differs in %d tokens, not in one", name, len(found))
	}
	return found[0], nil
}

// withStderr adds what a command printed before it failed.
func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
