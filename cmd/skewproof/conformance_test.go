package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/reports"
)

// programVariable makes a copy of this test binary act as the program itself, because some commands
// start the program again.
const programVariable = "SKEWPROOF_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(execute(os.Args[1:]))
	}
	if err := os.Setenv(programVariable, "1"); err != nil { // for copies of this process that commands start
		panic(err)
	}
	os.Exit(m.Run())
}

// program prepares the program and keeps its output.
func program(t *testing.T, output *bytes.Buffer, words ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, words...)
	cmd.Env = append(os.Environ(), programVariable+"=1")
	cmd.Stdout, cmd.Stderr = output, output
	return cmd
}

// breakOff starts a program that carries out runs into dir, and sends it SIGINT when the runs in
// underWay are active. It returns when the program has ended.
func breakOff(t *testing.T, cmd *exec.Cmd, dir string, underWay ...string) {
	t.Helper()
	// The program goes on ignoring a SIGINT that it was started to ignore, like a background job of a
	// script. What this process handles, it does not ignore.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	err := cmd.Start()
	signal.Stop(interrupts)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for _, run := range underWay {
		waitFor(t, func() bool {
			select {
			case <-ended:
				t.Fatalf("the program ended before %s was active; it said:\n%s", run, cmd.Stdout)
			default:
			}
			_, err := os.Stat(filepath.Join(dir, run, "run.json"))
			return err == nil
		})
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// conformed runs a whole conformance suite.
func conformed(t *testing.T, words ...string) (int, reports.ConformanceReport, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	if !slices.Contains(words, "--qps") {
		words = append(words, "--qps", rate)
	}
	cmd := program(t, &output, append([]string{"conformance", "--out", dir}, words...)...)
	_ = cmd.Run() // the exit code says how it ended
	report, err := reports.ReadConformance(filepath.Join(dir, reports.ConformanceFile))
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, &output)
	}
	junit, err := os.ReadFile(filepath.Join(dir, reports.JUnitFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Scenarios {
		_, after, found := bytes.Cut(junit, []byte(`name="`+s.Name+`" classname="conformance.`+s.Family+`"`))
		if !found {
			t.Errorf("the JUnit file has no stable name of the scenario %s in the order of the catalogue", s.Name)
		}
		junit = after
	}
	rendersAgain(t, dir, reports.ConformanceHTML, cmd.ProcessState.ExitCode())
	return cmd.ProcessState.ExitCode(), report, output.String()
}

// Nothing but finding 46 is seen, which no proxy can prevent.
func TestConformanceOfTheReference(t *testing.T) {
	t.Parallel()
	code, report, out := conformed(t, "--backend", "sim", "--subject", "reference", "--labels", "quiet || two-servers-one-hostname", "--product-version", "v9", "--known")
	if code != exitPass || report.Result != reports.ResultKnown || report.Product.Version != "v9" {
		t.Errorf("exit code %d, report %s: %s", code, report.Result, out)
	}
	if core := report.Profiles[0]; core.Known != 1 || core.Skipped != 1 {
		t.Errorf("%+v, want one known and one skipped", core)
	}
	if s := report.Scenarios[1]; s.Core.Result != reports.ResultSkipped || !strings.Contains(s.Core.Reason, "it runs on local") {
		t.Errorf("%s: %+v, want it skipped with the reason", s.Name, s.Core)
	}
	if len(report.Control.Runs) != 1 || report.Control.Result != reports.ResultPassed {
		t.Errorf("control %+v", report.Control)
	}
	if want := "skewproof conformance --backend=sim --known=true --labels='quiet || two-servers-one-hostname' --product-version=v9 --qps=110 --subject=reference"; report.Reproduce != want {
		t.Errorf("to be reproduced by %s, want %s", report.Reproduce, want)
	}
}

// The word of a suite does not depend on --known. Only the exit code does.
func TestConformanceOfABrokenProxy(t *testing.T) {
	t.Parallel()
	for known, want := range map[string]int{"--known=true": exitPass, "": exitFail} {
		words := []string{"--backend", "sim", "--labels", "quiet"}
		if known != "" {
			words = append(words, known)
		}
		code, report, out := conformed(t, words...)
		if code != want || report.Result != reports.ResultKnown || report.Scenarios[0].Core.Result != reports.ResultKnown ||
			!strings.Contains(out, "KNOWN: the KEP was violated in 1 of 1 scenario: findings 2 and 46; nothing is new") {
			t.Errorf("%s: exit code %d, report %s: %s", known, code, report.Result, out)
		}
	}
}

// Runs that are active at the same time have the same results as runs one after the other.
func TestConformanceOfTwoAtATime(t *testing.T) {
	t.Parallel()
	suite := []string{"--backend", "sim", "--labels", "quiet || two-servers-one-hostname || peer-crash", "--controls", "few"}
	_, one, _ := conformed(t, suite...)
	code, two, out := conformed(t, append(suite, "--parallel", "2")...)
	if code != exitFail || !strings.HasSuffix(two.Reproduce, " --parallel=2 --qps="+rate) {
		t.Errorf("exit code %d, reproduced by %q: %s", code, two.Reproduce, out)
	}
	for _, report := range []*reports.ConformanceReport{&one, &two} {
		report.Metadata, report.Reproduce = reports.ConformanceMetadata{Complete: report.Metadata.Complete}, ""
		for i := range report.Scenarios {
			report.Scenarios[i].DurationSeconds = 0
		}
		for i := range report.Control.Runs {
			report.Control.Runs[i].DurationSeconds = 0
		}
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("one at a time (-) and two (+) differ:\n%s", diff)
	}
}

// interrupted sends SIGINT to a conformance suite when the directories of the runs in underWay
// exist. The report that the suite writes never passes.
func interrupted(t *testing.T, underWay []string, words ...string) (report reports.ConformanceReport, said, junit string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	var output bytes.Buffer
	cmd := program(t, &output, append([]string{"conformance", "--backend", "sim", "--subject", "reference", "--out", dir}, words...)...)
	breakOff(t, cmd, dir, underWay...)
	report, err := reports.ReadConformance(filepath.Join(dir, reports.ConformanceFile))
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, &output)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitInconclusive || report.Metadata.Complete || report.Result != reports.ResultInconclusive {
		t.Errorf("exit code %d, complete %v, result %s; it said:\n%s", code, report.Metadata.Complete, report.Result, &output)
	}
	said = output.String()
	for _, dump := range []string{"goroutine", "Progress Report", "spec runner"} { // parts of Ginkgo's output after a signal
		if strings.Contains(said, dump) {
			t.Errorf("it says %q:\n%s", dump, said)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, reports.JUnitFile))
	if err != nil {
		t.Error(err)
	}
	for _, run := range underWay {
		if page, err := os.ReadFile(filepath.Join(dir, reports.ConformanceHTML)); err != nil || !bytes.Contains(page, []byte(filepath.Base(run))) {
			t.Errorf("the page does not know of the interrupted run %s, error %v", run, err)
		}
	}
	return report, said, string(content)
}

// Ctrl-C ends the active run, and the report says so.
func TestConformanceInterrupted(t *testing.T) {
	t.Parallel()
	report, said, junit := interrupted(t, []string{"scenarios/upgrade-downgrade-upgrade"},
		"--labels", "upgrade-downgrade-upgrade || long-campaign", "--servers", "12")
	if s := report.Scenarios[0]; s.Core.Result != reports.ResultInconclusive || !strings.Contains(s.Core.Reason, "interrupted") {
		t.Errorf("%s: %+v, want it interrupted", s.Name, s.Core)
	}
	if s := report.Scenarios[1]; s.Core.Result != reports.ResultSkipped || s.Core.Reason != reports.NotReached || s.Reproduce == "" {
		t.Errorf("%s: %+v, reproduced by %q; want it not run, and how it could have been", s.Name, s.Core, s.Reproduce)
	}
	for _, want := range []string{
		"stopping; a second Ctrl-C", "interrupted in upgrade-downgrade-upgrade", "upgrade-downgrade-upgrade.log", "not run: long-campaign\n", "not run: 2 control runs",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if !strings.Contains(junit, "interrupted in upgrade-downgrade-upgrade") {
		t.Errorf("the JUnit file does not know of the interrupted run:\n%s", junit)
	}
}

// Ctrl-C ends all active runs, and each of them says so. A run that ended before the signal keeps
// its verdict.
func TestConformanceInterruptedInTwo(t *testing.T) {
	t.Parallel()
	report, said, junit := interrupted(t, []string{"scenarios/upgrade-downgrade-upgrade", "scenarios/long-campaign"},
		"--labels", "upgrade-downgrade-upgrade || large-list || long-campaign", "--servers", "12", "--parallel", "2")
	for i, want := range []reports.Result{reports.ResultInconclusive, reports.ResultPassed, reports.ResultInconclusive} {
		s := report.Scenarios[i]
		if s.Core.Result != want || want == reports.ResultInconclusive && !strings.Contains(s.Core.Reason, "interrupted") || s.Directory == "" {
			t.Errorf("%s in %q: %+v, want it %s", s.Name, s.Directory, s.Core, want)
		}
	}
	for _, r := range report.Control.Runs {
		if r.Reason != reports.NotReached || r.Directory != "" {
			t.Errorf("the control run of %s in %q: %s, want it not run", r.Scenario, r.Directory, r.Reason)
		}
	}
	for _, want := range []string{"interrupted in upgrade-downgrade-upgrade", "interrupted in long-campaign", "the rest of the suite is not run"} {
		if !strings.Contains(said, want) || !strings.Contains(junit, want) {
			t.Errorf("it or the JUnit file does not say %q:\n%s", want, said)
		}
	}
	if !strings.Contains(said, "not run: 2 control runs") {
		t.Errorf("it does not say what was not run:\n%s", said)
	}
}

// waitFor waits for a condition, for at most the time limit of the test.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-t.Context().Done():
			t.Fatal("it never came")
		case <-tick.C:
		}
	}
}

func TestConformanceRefusesWrongUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for words, want := range map[string]string{
		"--labels nosuch":             "choose no scenario",
		"--subject nobodys":           "--subject",
		"--from v1.37.1 --to v1.36.3": "older than --from",
		"--from v1.99.0":              "--from v1.99.0 is newer than the default --to v1.37.1: give --to as well",
		"--backend moon":              "want local, kind, sim or existing",
		"--backend existing":          "--backend existing needs --kubeconfig",
		"--servers -1":                "want a number above 0",
		"--labels (quiet":             "could not find matching",
		"--controls none":             "want each or few",
		"--parallel 0":                "--parallel 0: want at least 1",
		"--backend existing --kubeconfig nope --parallel 2": "parallel 2: servers that run already",
		"--backend sim --from v1.2.3":                       "v1.2.3",
		"--backend sim --kubeconfig /dev/null":              "are for the backend existing",
		"--backend existing --kubeconfig x -x":              "unknown shorthand",
		"--backend existing --subject builtin ":             "kubeconfig",
	} {
		_, err := call(t, append([]string{"conformance"}, strings.Fields(words)...)...)
		if code := codeOf(t, err); code != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d, error %v; want %d and %q", words, code, err, exitUsage, want)
		}
	}
	_, err := call(t, "conformance", "--backend", "existing", "--kubeconfig", "nope")
	if code := codeOf(t, err); code != exitNotRun || !strings.Contains(err.Error(), "read kubeconfig: stat nope: no such file") {
		t.Errorf("a kubeconfig that is missing: exit code %d, error %v", code, err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("it left %v, error %v", left, err)
	}
}
