package local

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// Ginkgo joins all --ginkgo.focus with "|". It matches the suite's name, a space and a spec's name.
func TestOnlyTheChosenSpecsMatchTheFocusOfTests(t *testing.T) {
	chosen := []string{"[sig-node] ConfigMap should work (a|b) [Conformance]", "[sig-apps] Job should be. deleted"}
	var focus []string
	for _, arg := range TestsArguments(Files{Keys: "K", Logs: "L"}, scenario.Tests{Specs: chosen}) {
		if f, ok := strings.CutPrefix(arg, "--ginkgo.focus="); ok {
			focus = append(focus, f)
		}
	}
	re := regexp.MustCompile(strings.Join(focus, "|"))
	for _, name := range chosen {
		if !re.MatchString("Kubernetes e2e suite " + name) {
			t.Errorf("%q is chosen, and not in focus", name)
		}
	}
	for _, name := range []string{
		chosen[0] + " twice", "more " + chosen[0], "[sig-node] ConfigMap should work a [Conformance]", "[sig-apps] Job should bee deleted",
	} {
		if re.MatchString("Kubernetes e2e suite " + name) {
			t.Errorf("%q is not chosen, and in focus", name)
		}
	}
}

func TestTheArgumentsOfTests(t *testing.T) {
	args := TestsArguments(Files{Keys: "K", Logs: "L"}, scenario.Tests{Specs: []string{"x"}})
	for _, want := range []string{"--kubeconfig=K/tests.kubeconfig", "--report-dir=L/e2e", "--num-nodes=0", "--allowed-not-ready-nodes=-1", "--ginkgo.seed=1"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing in %q", want, args)
		}
	}
	if got := (Files{Logs: "L"}).TestResults(); got != "L/e2e/junit_01.xml" {
		t.Errorf("the results are looked for in %s", got)
	}
}

// The host of the tests has addresses that no other host has.
func TestTheHostOfTestsIsNoOther(t *testing.T) {
	servers := make([]history.Server, MaxServers)
	for i := range servers {
		servers[i].Name = scenario.ServerName(i)
	}
	for _, p := range Places(servers) {
		if p.Subnet.Overlaps(testsHost) || testsHost.Contains(p.Advertised.Addr()) {
			t.Errorf("server %s at %s, %s shares %s with the tests", p.Name, p.Subnet, p.Advertised, testsHost)
		}
	}
	if controllersHost.Overlaps(testsHost) {
		t.Errorf("the controllers share %s with the tests", testsHost)
	}
}

// testsDoing is a cluster in which a shell script replaces e2e.test. $1 is the file of results.
func testsDoing(t *testing.T, script string) *Cluster {
	t.Helper()
	c := &Cluster{config: Config{Files: Files{Keys: t.TempDir(), Logs: t.TempDir()}}}
	results := c.config.Files.TestResults()
	if err := os.MkdirAll(filepath.Dir(results), 0o700); err != nil {
		t.Fatal(err)
	}
	// A shell cannot trap a signal that it was started to ignore, like a background job of a script.
	// What this process handles, it does not ignore.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	p, err := startProcess(ProgramTests, "/bin/sh", []string{"-c", script, "sh", results}, c.config.Files.log("tests"), (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	c.tests.program = p
	t.Cleanup(c.tests.close)
	return c
}

func TestTestsAreAwaited(t *testing.T) {
	if err := testsDoing(t, `echo results > "$1"; exit 1`).AwaitTests(t.Context(), time.Minute); err != nil {
		t.Errorf("failed specs must not be an error of the run: %v", err)
	}
	if err := testsDoing(t, "echo no such host; exit 1").AwaitTests(t.Context(), time.Minute); err == nil ||
		!strings.Contains(err.Error(), "left no results") || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("tests that left nothing: got %v", err)
	}
	c := &Cluster{}
	if err := c.AwaitTests(t.Context(), time.Minute); err == nil || err.Error() != "no tests run" {
		t.Errorf("no tests: got %v", err)
	}
}

// Tests that take too long get an interrupt, so that they write the results that they have.
func TestTestsThatTakeTooLongAreEnded(t *testing.T) {
	c := testsDoing(t, `trap 'echo results > "$1"; exit 0' INT; echo ready; while :; do sleep 0.01; done`)
	program := c.tests.program
	for program.log.Tail(1) != "ready" {
		runtime.Gosched()
	}
	if err := c.AwaitTests(t.Context(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "still running after 1ms") {
		t.Errorf("got %v", err)
	}
	<-program.done
	if _, err := os.Stat(c.config.Files.TestResults()); err != nil {
		t.Errorf("they could not write their results: %v", err)
	}
}

func TestTestsEndWithTheRun(t *testing.T) {
	c := testsDoing(t, "trap '' INT TERM; while :; do sleep 0.01; done")
	program := c.tests.program
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.AwaitTests(ctx, time.Minute); err == nil {
		t.Error("interrupted tests must be an error")
	}
	<-program.done
	c = testsDoing(t, "trap '' INT TERM; while :; do sleep 0.01; done")
	program = c.tests.program
	c.tests.close()
	<-program.done
}
