package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/sandbox"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/scenarios"
)

// These are the exit codes that the README documents.
const (
	pass         = 0
	fail         = 1
	inconclusive = 2
	notRun       = 3
	usage        = 4
)

// all is true to run every test. Otherwise only the smoke set is run, for which continuous
// integration has time.
var all = flag.Bool("all", false, "run every scenario that has a test here, not the smoke set alone")

// onlyWithAll skips a test that is not in the smoke set.
func onlyWithAll(t *testing.T) {
	t.Helper()
	if !*all {
		t.Skip("not in the smoke set: 'make e2e-all' runs it")
	}
}

// skewproof is the program under test, built once.
var skewproof string

// unsupported is the reason why this machine cannot run a cluster. It is empty if the machine can.
var unsupported string

// checkVariable tells a copy of this test binary to check whether the machine can have a sandbox.
// Its last argument is a scratch directory.
const checkVariable = "SKEWPROOF_E2E_CHECK_SANDBOX"

func TestMain(m *testing.M) {
	if os.Getenv(checkVariable) != "" {
		if err := sandbox.Try(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if isInside() {
		skewproof = os.Getenv(insideVariable)
		os.Exit(m.Run())
	}
	if signal.Ignored(os.Interrupt) { // shells start background jobs with SIGINT ignored, and children inherit this; tests send the signal
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "skewproof-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		skewproof = filepath.Join(dir, "skewproof")
		build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-o", skewproof, "../../cmd/skewproof") // as 'make test' compiles
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build skewproof: %v\n%s", err, out)
			return 1
		}
		if err := sandbox.Check(context.Background(), sandbox.Command{Env: []string{checkVariable + "=1"}}); err != nil {
			unsupported = err.Error()
			return m.Run()
		}
		// Fetch once, before all tests and with visible progress, so that the tests do not include
		// minutes of building.
		if err := get("v1.36.3", "v1.37.1"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// needsTools skips a test that needs programs of util-linux which are not installed.
func needsTools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s, from the package util-linux: %v", name, err)
		}
	}
}

// get fetches or builds the binaries of those versions, with visible progress. Cached binaries take
// no time.
func get(versions ...string) error {
	get := exec.Command(skewproof, append([]string{"binaries", "get"}, versions...)...)
	get.Stdout, get.Stderr = os.Stderr, os.Stderr
	if err := get.Run(); err != nil {
		return fmt.Errorf("get the binaries to test with: %w", err)
	}
	return nil
}

// needsVersions gets the versions that only some tests run.
func needsVersions(t *testing.T, versions ...string) {
	t.Helper()
	if err := get(versions...); err != nil {
		t.Fatal(err)
	}
}

func needsCluster(t *testing.T) {
	t.Helper()
	if unsupported != "" {
		t.Skip(unsupported)
	}
}

// result is a finished run.
type result struct {
	code   int
	output string
	dir    string
}

// command prepares skewproof so that its output is kept, in its own process group, as a shell would
// start it.
func command(t *testing.T, output *bytes.Buffer, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), skewproof, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	var output bytes.Buffer
	return result{code: exitCode(t, command(t, &output, args...).Run()), output: output.String()}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// runScenario runs one scenario to its end and returns the report of the real run. If the simulator
// can run the scenario, it runs there too and the verdicts are compared.
func runScenario(t *testing.T, name string, flags ...string) (result, reports.RunReport) {
	t.Helper()
	r, report := scenarioAlone(t, name, flags...)
	s, err := scenarios.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if s.Limits.Allows(scenario.BackendSim) {
		agreesWithTheSimulator(t, report, name, flags...)
	}
	return r, report
}

// scenarioAlone does not compare, because a run with almost no load sends requests by chance, and
// so its verdicts depend on chance.
func scenarioAlone(t *testing.T, name string, flags ...string) (result, reports.RunReport) {
	t.Helper()
	needsCluster(t)
	dir := filepath.Join(t.TempDir(), "run")
	r := run(t, append([]string{"run", name, "--out", dir}, flags...)...)
	r.dir = dir
	t.Logf("%s %s: exit code %d\n%s", name, strings.Join(flags, " "), r.code, r.output)
	report, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	return r, report
}

// eventually waits for a condition that another process makes true.
func eventually(t *testing.T, what string, limit time.Duration, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s", what, limit)
		case <-tick.C:
		}
	}
}
