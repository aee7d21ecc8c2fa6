package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fixture has every operator that is replaced, in the places where putting a switch is not easy.
const fixture = `package fixture

import (
	"fmt"
	"strings"
	"time"
)

type kind string

type flag bool

const limit = 2 + 1 // a constant has no switch

var letters = [limit + 1]string{"a", "b"}

var calls = 0

func next() int { calls++; return calls }

// Run returns what all operators came to.
func Run() string {
	calls = 0
	var out strings.Builder
	say := func(v ...any) { fmt.Fprintln(&out, v...) }
	for i := 0; i < 3; i++ { // every turn has its own i
		defer func() { calls += i }()
		say(i, i == 1, i != 1, i <= 1, i > 1, i >= 1)
		if out.Len() > 4096 { // a mutant counts the other way
			break
		}
	}
	n := 7
	n--
	n++
	say(n+2, n-2, n*2, n/2, n%4, -n, n - -n)
	say(next() < next(), next() >= next(), next() > next(), next() <= next(), calls, next()+next()*next() - 1 == 109 && next() > 0 ||
		n == 1, calls)
	var small uint8 = 3
	say(small*2+1, 'a'+small, 1.5*float64(n), 2*time.Duration(n), time.Second*3,
		-1, 6/4, float64(3-1), 0*time.Second, uint8(1)+2)
	var k kind = "x"
	say(k+"y" == "xy", "a" < "b" != false, k > "w" && k < "y")
	for bits := range 16 {
		a, b, c, d := bits&1 == 1, bits&2 == 2, bits&4 == 4, bits&8 == 8
		say(a && b && c, a || b && c, (a || b) && (c || d), a && (b && d) || c, a || b || c)
	}
	say(flag(true) && flag(n == 7), letters[1+n-7])
	if (struct{ a int }{n}) == (struct{ a int }{7}) && !(n < 0) {
		say("equal")
	}
	switch m := map[string]int{"b": 1}; {
	case n < 0 || m["a"] == 1:
		say("first")
	case n >= 7: // the boundary
		m["b"]++
		say("second", m["b"])
	}
	found := func(yes bool) bool { return yes &&
		n > 6 }
	say(found(true), found(false), len(out.String())-1 > 3)
	return out.String()
}
`

// module writes a module of these files and returns its directory.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module fixture\n\ngo 1.26.0\n"
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// changed is a source with a mutant in it, made as gremlins makes it: an operator of the syntax
// tree is replaced, and the tree printed.
func changed(t *testing.T, source string, m mutant) string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	at := fset.File(file.Package).Pos(tokensOf(source)[m.Token].offset)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.OpPos == at {
				n.Op = tokenNamed(m.Now)
			}
		case *ast.UnaryExpr:
			if n.OpPos == at {
				n.Op = tokenNamed(m.Now)
			}
		case *ast.IncDecStmt:
			if n.TokPos == at {
				n.Tok = tokenNamed(m.Now)
			}
		}
		return true
	})
	var out strings.Builder
	if err := printer.Fprint(&out, fset, file); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func tokenNamed(name string) token.Token {
	for t := token.ILLEGAL; t <= token.TILDE; t++ {
		if t.String() == name {
			return t
		}
	}
	panic(name)
}

// program returns a program that prints the results of Run of some packages, or their panics.
func program(packages []string) string {
	var imports, calls strings.Builder
	for _, p := range packages {
		fmt.Fprintf(&imports, "import %s %q\n", p, "fixture/"+p)
		fmt.Fprintf(&calls, "show(%s.Run)\n", p)
	}
	return "package main\n\nimport \"fmt\"\n" + imports.String() + `
func show(run func() string) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Printf("panic: %v\n", r)
		}
	}()
	fmt.Printf("%q\n", run())
}

func main() {
` + calls.String() + "}\n"
}

// A mutant that is switched on behaves like a program with the mutant in its source.
func TestSwitchesDoWhatChangedSourcesDo(t *testing.T) {
	dir := module(t, map[string]string{"f/fixture.go": fixture})
	s, err := putSwitches("go", filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	mutants := slices.SortedFunc(maps.Keys(s.Numbers), func(a, b mutant) int { return int(s.Numbers[a] - s.Numbers[b]) })
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return s.Numbers[m] == notViable })
	kinds := map[string]bool{}
	files := map[string]string{}
	packages := []string{"m0"}
	files["m0/fixture.go"] = fixture
	for _, m := range mutants {
		kinds[tokensOf(fixture)[m.Token].kind.String()+" → "+m.Now] = true
		if found, err := difference(m.File, fixture, changed(t, fixture, m)); err != nil || found != m {
			t.Errorf("%+v is found as %+v, %v", m, found, err)
		}
		name := fmt.Sprintf("m%d", s.Numbers[m])
		files[name+"/fixture.go"] = changed(t, fixture, m)
		packages = append(packages, name)
	}
	for old, nows := range replacements {
		for _, now := range nows {
			if !kinds[old.String()+" → "+now.String()] {
				t.Errorf("no mutant of the fixture replaces %s by %s", old, now)
			}
		}
	}
	files["main.go"] = program(packages)
	for name, source := range s.Files {
		files["switched/"+name] = source
	}
	files["one/main.go"] = program([]string{"switched"})
	dir = module(t, files)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin")+"/", ".", "./one")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "fixture")).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.SplitAfter(string(out), "\n")
	different := 0
	for n, m := range append([]mutant{{}}, mutants...) {
		one := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "one"))
		one.Env = append(os.Environ(), variable+"="+strconv.Itoa(n))
		got, err := one.Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want[n] {
			t.Errorf("mutant %d, %+v: the switch gives\n%s\nthe changed source\n%s", n, m, got, want[n])
		}
		if want[n] != want[0] {
			different++
		}
	}
	if different < len(mutants)*2/3 {
		t.Errorf("only %d of %d mutants make a difference: the fixture does not show that switches work", different, len(mutants))
	}
}

// The compiler refuses the difference of strings; a constant cannot have a switch.
func TestWhatHasNoSwitch(t *testing.T) {
	dir := module(t, map[string]string{"fixture.go": fixture})
	s, err := putSwitches("go", dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) int {
		offset := strings.Index(fixture, text)
		return slices.IndexFunc(tokensOf(fixture), func(l lexeme) bool { return l.offset >= offset && l.kind == token.ADD })
	}
	if n, ok := s.Numbers[mutant{"fixture.go", at(`k+"y"`), "-"}]; !ok || n != notViable {
		t.Errorf("the concatenation has the number %d, %t, want %d", n, ok, notViable)
	}
	for _, constant := range []string{"2 + 1", "limit + 1"} {
		if n, ok := s.Numbers[mutant{"fixture.go", at(constant), "-"}]; ok {
			t.Errorf("%s has the number %d, want none", constant, n)
		}
	}
}

const (
	judged = `package fixture

const twice = 1 + 1

func Bounded(n int) bool { return n < 3 && n > -5 }

func Name(s string) string { return s + "!" }

func Unknown(n int) bool { return n == 0 }

func Loop(n int) { for n > 0 { n-- } }

func Double(n int) int { return n * twice }
`
	judging = `package fixture

import "testing"

func TestBounded(t *testing.T) {
	if !Bounded(2) || Bounded(3) || Bounded(-7) { t.Error() }
	if Double(2) != 4 || Name("a") != "a!" { t.Error() }
	Loop(2)
	Unknown(0)
}
`
)

// The go command that gremlins gets tells what becomes of each mutant by its exit code.
func TestGoCommandJudgesMutants(t *testing.T) {
	dir := module(t, map[string]string{"fixture.go": judged, "fixture_test.go": judging})
	stateFile, err := prepare(t.Context(), dir, t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(stateVariable, stateFile)
	t.Setenv("PATH", os.Getenv("PATH")) // standIn changes it
	for _, c := range []struct {
		name, old, now string
		want           int
	}{
		{"a test fails", "n < 3", "n <= 3", exitKilled},
		{"no test fails", "n > -5", "n >= -5", 0},
		{"no code uses the result", "n == 0", "n != 0", 0},
		{"strings have no difference", `s + "!"`, `s - "!"`, exitNotViable},
		{"a declared constant, which a test notices", "1 + 1", "1 - 1", exitKilled},
		{"a constant, which the compiler notices", "const twice = 1 + 1", "const twice = 1 / 0", exitNotViable},
		{"it does not end", "n-- }", "n++ }", exitKilled},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(judged, c.old) != 1 {
				t.Fatalf("%q is not in the fixture once", c.old)
			}
			t.Chdir(module(t, map[string]string{"fixture.go": strings.Replace(judged, c.old, c.now, 1), "fixture_test.go": judging}))
			got, err := standIn([]string{"test", "-timeout", "2s", "-failfast", "fixture"})
			if err != nil || got != c.want {
				t.Errorf("exit code %d, %v; want %d", got, err, c.want)
			}
		})
	}
	t.Run("coverage", func(t *testing.T) {
		t.Chdir(dir)
		profile := filepath.Join(t.TempDir(), "coverage")
		if got, err := standIn([]string{"test", "-cover", "-coverprofile", profile, "./..."}); err != nil || got != 0 {
			t.Fatalf("exit code %d, %v", got, err)
		}
		if data, err := os.ReadFile(profile); err != nil || !strings.Contains(string(data), "fixture.go:5.") {
			t.Errorf("profile %s, %v", data, err)
		}
	})
}

// A sample has about the requested size, is the same each time, and has mutants of all files. The
// mutants outside it are counted.
func TestSample(t *testing.T) {
	s := state{Switched: switched{Numbers: map[mutant]number{}}, Sample: 100}
	var all []mutant
	for n := range 1000 {
		m := mutant{File: fmt.Sprintf("file-%d.go", n/100), Token: n % 100, Now: "<="}
		all = append(all, m)
		s.Switched.Numbers[m] = number(n)
	}
	count := func() (n int, files map[string]bool) {
		files = map[string]bool{}
		for _, m := range all {
			if s.samples(m) {
				n++
				files[m.File] = true
			}
		}
		return n, files
	}
	n, files := count()
	if again, _ := count(); n < 70 || n > 130 || again != n || len(files) != 10 {
		t.Errorf("%d mutants of %d files, and %d the next time, want about 100 of 10", n, len(files), again)
	}
	for _, sample := range []int{0, 1000, 2000} {
		s.Sample = sample
		if n, _ := count(); n != len(all) {
			t.Errorf("a sample of %d has %d of %d", sample, n, len(all))
		}
	}
	stateFile := filepath.Join(t.TempDir(), "state")
	for want := range 3 {
		if n, err := leftOut(stateFile); n != want || err != nil {
			t.Errorf("%d are left out, %v; want %d", n, err, want)
		}
		if err := leaveOut(stateFile); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoMutantsAreSoughtWhereTestsFail(t *testing.T) {
	dir := module(t, map[string]string{"fixture.go": judged, "fixture_test.go": strings.Replace(judging, "Double(2) != 4", "Double(2) != 5", 1)})
	if _, err := prepare(t.Context(), dir, t.TempDir(), 0); err == nil || !strings.Contains(err.Error(), "the tests fail without any mutant") {
		t.Errorf("got %v", err)
	}
}

func TestConditionsOfCasesAreCoveredWhereTheSwitchRan(t *testing.T) {
	dir := module(t, map[string]string{"a.go": "package a\n\nfunc f(n int) int {\n\tswitch {\n\tcase n == 1,\n\t\tn > 2:\n\t\treturn 1\n\t}\n\treturn 0\n}\n" +
		"\nfunc g(n int) {\n\tswitch {\n\tcase n == 1:\n\t}\n}\n"})
	profile := filepath.Join(dir, "coverage")
	before := "mode: set\nfixture/a.go:3.19,4.9 1 1\nfixture/a.go:7.3,7.11 1 0\nfixture/a.go:12.15,13.9 1 0\n"
	if err := os.WriteFile(profile, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := coverCases(profile, dir); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(profile)
	if want := before + "fixture/a.go:5.7,5.13 1 1\nfixture/a.go:6.3,6.8 1 1\n"; err != nil || string(after) != want {
		t.Errorf("got %q, %v; want %q", after, err, want)
	}
}
