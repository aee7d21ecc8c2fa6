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

// notViable is the number of a mutant that the compiler refuses, such as the difference of two
// strings.
const notViable number = -1

// switched is a package in which every mutant of a kind listed in replacements can be switched on
// by the environment variable variable. A mutant without a number needs its own build.
type switched struct {
	Dir     string
	Sources map[string]string // base name → source, which may be edited while mutants are tested
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

// runtime is added to a switched package. Every operand is evaluated exactly as often as without
// the switch.
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

// functions are the functions of runtime, by the operators that they replace.
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
	config := types.Config{Importer: importer.ForCompiler(fset, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	checked, err := config.Check(dir, fset, files, info)
	if err != nil {
		return switched{}, fmt.Errorf("check the types of the package in %s: %w", dir, err)
	}
	s := switched{Dir: dir, Sources: map[string]string{},
		Files:   map[string]string{"mutant_switches.go": fmt.Sprintf(runtime, files[0].Name.Name, variable)},
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
		s.Sources[name] = sources[file]
		s.Files[name], next = e.text(), e.next
	}
	return s, nil
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

// difference finds the one token that differs between two sources. Parentheses do not count: when
// gremlins makes "a && b && c" into "(a || b) && c", its printer adds them.
func difference(name, before, after string) (mutant, error) {
	parentheses := func(l lexeme) bool { return l.kind == token.LPAREN || l.kind == token.RPAREN }
	a, b := tokensOf(before), slices.DeleteFunc(tokensOf(after), parentheses)
	var found []mutant
	at := 0 // in b
	for i, old := range a {
		if parentheses(old) {
			continue
		}
		if at < len(b) && (old.kind != b[at].kind || old.text != b[at].text) {
			found = append(found, mutant{name, i, b[at].kind.String()})
		}
		at++
	}
	if at != len(b) {
		return mutant{}, fmt.Errorf("%s has %d tokens without parentheses, and %d with the mutant", name, at, len(b))
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
