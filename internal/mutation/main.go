// Command mutation tests the tests: it changes one operator of a package at a time and says which
// changes no test notices.
//
//	go run ./internal/mutation -gremlins github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 ./proxy/peers
//
// gremlins finds the mutants, leaves out what no test reaches, and counts. In the place of the go
// command it gets this program, for four reasons:
//
//   - gremlins builds and links a test binary for every mutant, which takes ten times longer than
//     the tests. Here one binary has all mutants, and the environment says which is on; see
//     [switched]. Only mutants of declared constants, and few others, are built by themselves.
//   - go test of Go 1.26 exits with 1 for a mutant that does not compile, and gremlins 0.6.0 counts
//     it as killed. Here the exit code is 2, which gremlins counts as not viable.
//   - Coverage profiles have no blocks for the conditions of cases, so that gremlins would call
//     them not covered. Here they are added; see [coverCases].
//   - Quick tests run before slow ones, a test binary ends with the go command that started it, and
//     its memory is bounded.
//
// (gremlins' --test-cpu must not be used: 0.6.0 passes "-cpu 1" as one word, go test fails, and
// every mutant counts as killed.)
//
// The exit code is 1 if fewer than 90 % of a package's mutants are killed, and 2 if that is not
// known.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// kinds are the mutants that gremlins makes: its default, and the exchange of && and ||.
var kinds = []string{"--invert-logical"}

func main() {
	if filepath.Base(os.Args[0]) == "go" {
		code, err := standIn(os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutation:", err)
			os.Exit(3)
		}
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	enough, err := measureAll(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(2)
	}
	if !enough {
		os.Exit(1)
	}
}

// campaign holds the values of the flags.
type campaign struct {
	gremlins  string // the program
	scratch   string // a directory for built files
	threshold float64
	workers   int
	sample    int // about how many mutants of each package are tested; 0: all
}

func measureAll(ctx context.Context) (enough bool, err error) {
	var c campaign
	module := flag.String("gremlins", "", "module and version of gremlins' command")
	page := flag.String("page", "", "a page whose table gets the results")
	flag.Float64Var(&c.threshold, "threshold", 90, "percent of the mutants that tests must kill, for each package")
	flag.IntVar(&c.sample, "sample", 0, "test about so many mutants of each package, the same ones each time, and leave the others out; 0: all")
	flag.IntVar(&c.workers, "workers", 2, "how many mutants are tested at a time")
	flag.Parse()
	if c.sample < 0 {
		return false, errors.New("-sample must not be negative")
	}
	if *module == "" || flag.NArg() == 0 {
		return false, errors.New("name gremlins' module with -gremlins, and packages; 'make mutation' does both")
	}
	if c.scratch, err = os.MkdirTemp("", "mutation-"); err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(c.scratch) }()
	install := exec.CommandContext(ctx, "go", "install", *module)
	install.Env = append(os.Environ(), "GOBIN="+c.scratch)
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		return false, fmt.Errorf("install %s: %w", *module, err)
	}
	c.gremlins = filepath.Join(c.scratch, "gremlins")

	packages, err := listPackages(ctx, flag.Args())
	if err != nil {
		return false, err
	}
	enough = true
	var rows []row
	for _, p := range packages {
		r, err := c.measure(ctx, p)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		if r.efficacy() < c.threshold {
			enough = false
			fmt.Printf("%s: %.1f %% of the mutants were killed, fewer than %g %%\n", r.Package, r.efficacy(), c.threshold)
		}
		rows = append(rows, r)
		if *page != "" {
			if err := update(*page, rows); err != nil {
				return false, err
			}
		}
	}
	fmt.Print("\n" + heading)
	for _, r := range rows {
		fmt.Print(r)
	}
	return enough, nil
}

func update(page string, rows []row) error {
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	after, err := replaceRows(string(before), rows)
	if err != nil {
		return fmt.Errorf("write the results into %s: %w", page, err)
	}
	return os.WriteFile(page, []byte(after), 0o644)
}

type goPackage struct {
	ImportPath, Dir           string
	TestGoFiles, XTestGoFiles []string
	Module                    struct{ Path, Dir string }
}

// listPackages returns the packages that have tests.
func listPackages(ctx context.Context, patterns []string) ([]goPackage, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Module"}, patterns...)...)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %s: %w", strings.Join(patterns, " "), withStderr(err))
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for decoder.More() {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// measure runs gremlins over one package.
func (c campaign) measure(ctx context.Context, p goPackage) (row, error) {
	began := time.Now()
	r := row{Package: strings.TrimPrefix(p.ImportPath, p.Module.Path+"/"), Day: began.UTC().Format(time.DateOnly)}
	fmt.Printf("\n%s\n", r.Package)
	scratch, err := os.MkdirTemp(c.scratch, "package-")
	if err != nil {
		return r, err
	}
	stateFile, err := prepare(ctx, p.Dir, scratch, c.sample)
	if err != nil {
		return r, err
	}
	output := filepath.Join(scratch, "report.json")
	gremlins := exec.CommandContext(ctx, c.gremlins, append([]string{"unleash", p.Dir, "--output", output, "--output-statuses", "lct",
		"--exclude-files", "/", // packages below this one
		"--workers", strconv.Itoa(c.workers),
		"--timeout-coefficient", "6", // times the time for the coverage, because other processes may use the processors too
	}, kinds...)...)
	gremlins.Dir = p.Module.Dir
	gremlins.Env = append(os.Environ(), "PATH="+scratch+":"+os.Getenv("PATH"), stateVariable+"="+stateFile)
	gremlins.Stdout, gremlins.Stderr = os.Stdout, os.Stderr
	gremlins.Cancel = func() error { return gremlins.Process.Signal(os.Interrupt) }
	gremlins.WaitDelay = 10 * time.Second // it would wait for the mutants that it has begun
	if err := gremlins.Run(); err != nil {
		return r, fmt.Errorf("gremlins: %w", err)
	}
	result, err := readReport(output)
	if err != nil {
		return r, err
	}
	r.Took = time.Since(began)
	if r.LeftOut, err = leftOut(stateFile); err != nil {
		return r, err
	}
	return r, r.add(result)
}

// prepare builds the switched test binary of the package in dir, sees that its tests pass with no
// mutant on, and puts a go command for gremlins into scratch. It returns the file with its state.
func prepare(ctx context.Context, dir, scratch string, sample int) (string, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return "", err
	}
	s := state{Go: goCommand, Path: os.Getenv("PATH"), Binary: filepath.Join(scratch, "switched.test"), Sample: sample}
	if s.Switched, err = putSwitches(goCommand, dir); err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, source := range s.Switched.Files {
		file := filepath.Join(scratch, name)
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(dir, name)] = file
	}
	replace, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(overlayFile, replace, 0o600); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, goCommand, "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", s.Binary, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests with switches: %w\n%s", err, out)
	}
	tests := exec.CommandContext(ctx, s.Binary, "-test.v", "-test.timeout=30m")
	tests.Dir = dir
	out, err := tests.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the tests fail without any mutant: %w\n%s", err, out)
	}
	if s.Quick, err = quick(string(out)); err != nil {
		return "", err
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if err := os.Symlink(program, filepath.Join(scratch, "go")); err != nil {
		return "", err
	}
	stateFile := filepath.Join(scratch, "state")
	return stateFile, s.save(stateFile)
}
