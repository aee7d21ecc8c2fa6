package suite

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// acts are behaviours of a program that no scenario can cause.
var acts = map[string]func(dir string) int{
	"cannot run": func(string) int {
		fmt.Fprintln(os.Stderr, "skewproof: start etcd: no space left")
		return 3
	},
	"wrong usage": func(string) int {
		fmt.Fprintln(os.Stderr, "skewproof: --subject \"builtin\": not in this version")
		return 4
	},
	"cannot even say so": func(string) int { // as with a log on a full disk
		if err := os.Stderr.Truncate(0); err != nil {
			return 1
		}
		return 3
	},
	"holds a cluster":              holdACluster,
	"says pass and leaves nothing": func(string) int { return 0 },
	"dies":                         func(string) int { panic("of a test") },
	"waits to be released":         waitToBeReleased,
	"gets the signal to end when it is over": func(dir string) int {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		left := report(invariant.OutcomeInconclusive) // a report of a run with no content
		left.APIVersion, left.Kind, left.Timeline.BucketSeconds = reports.APIVersion, reports.Kind, 1
		if os.Mkdir(dir, 0o700) != nil || reports.WriteAll(dir, *left) != nil || os.WriteFile(dir+".begun", nil, 0o600) != nil {
			return 3
		}
		<-ended
		return 2
	},
	"leaves a report of its first part": func(dir string) int {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		if os.WriteFile(dir+".begun", nil, 0o600) != nil {
			return 3
		}
		<-ended
		left := report(invariant.OutcomeFail, core("NoLoop", invariant.OutcomeFail))
		left.APIVersion, left.Kind, left.Timeline.BucketSeconds = reports.APIVersion, reports.Kind, 1
		left.Invariants[0].Violations, left.Metadata.Error = 1, "step 1, sweep: the run was stopped"
		if os.Mkdir(dir, 0o700) != nil || reports.WriteAll(dir, *left) != nil {
			return 3
		}
		return 1
	},
	"hangs unless released": func(dir string) int {
		released := make(chan struct{})
		go func() {
			if _, err := os.ReadFile(dir + ".release"); err == nil { // reads from a pipe, which blocks until another process writes to it
				close(released)
			}
		}()
		return hang(dir, released)
	},
	"hangs": func(dir string) int { return hang(dir, nil) },
}

// hang plays a run that reports when it begins, and ends after a signal or a release. After a
// signal it exits with 3, and after a release with 4.
func hang(dir string, released <-chan struct{}) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if err := os.WriteFile(dir+".begun", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return 1
	}
	select {
	case <-released:
		return 4
	case <-signals:
	}
	if err := os.WriteFile(dir+".tidied", nil, 0o600); err != nil {
		return 1
	}
	fmt.Fprintln(os.Stderr, "skewproof: interrupted before there was a verdict")
	return 3
}

// act runs this test binary in place of skewproof.
func act(t *testing.T, ctx context.Context, limit time.Duration, what string) (Finished, string) {
	t.Helper()
	t.Setenv(actVariable, what)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "runs", "quiet")
	return carryOut(ctx, self, task{run.Spec{Scenario: "quiet", Out: dir}, limit}), dir
}

func TestRunsThatGoWrong(t *testing.T) {
	for what, problem := range map[string]string{
		"cannot run":                   "exit code 3: start etcd: no space left",
		"cannot even say so":           "exit code 3: its log is empty",
		"wrong usage":                  "exit code 4: --subject",
		"says pass and leaves nothing": "no readable report",
		"dies":                         "exit code 2, and no readable report",
	} {
		t.Run(what, func(t *testing.T) {
			f, dir := act(t, t.Context(), time.Minute, what)
			if f.Report != nil || !strings.Contains(f.Problem, problem) {
				t.Errorf("the problem is %q, want one that says %q", f.Problem, problem)
			}
			if _, err := os.Stat(dir + ".log"); err != nil {
				t.Errorf("what it said was not kept: %v", err)
			}
		})
	}
	if f := carryOut(t.Context(), filepath.Join(t.TempDir(), "nothing"), task{run.Spec{Out: filepath.Join(t.TempDir(), "run")}, time.Minute}); f.Code != -1 || f.Problem == "" {
		t.Errorf("a program that is not there: code %d, %q", f.Code, f.Problem)
	}
}

// A run that takes too long is ended, and its result is never overstated.
func TestARunThatHangsIsEnded(t *testing.T) {
	f, _ := act(t, t.Context(), time.Second, "hangs")
	if f.Report != nil || !strings.Contains(f.Problem, "not over after 1s") {
		t.Errorf("the problem is %q", f.Problem)
	}
}

// The kernel tells a run to end when the thread that started it ends. So the thread must live as
// long as the run.
func TestARunKeepsTheThreadThatStartedIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := hanging(t, ctx, "hangs")
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	kept := false
	for goroutine := range strings.SplitSeq(string(stacks), "\n\n") {
		head, calls, _ := strings.Cut(goroutine, "\n")
		kept = kept || strings.Contains(calls, "suite.process(") && strings.Contains(head, "locked to thread")
	}
	if !kept {
		t.Errorf("no goroutine that waits for a run is locked to its thread:\n%s", stacks)
	}
	cancel()
	<-done
}

// hanging begins a run that hangs until ctx ends, and returns when the run hangs.
func hanging(t *testing.T, ctx context.Context, what string) (done <-chan Finished) {
	t.Helper()
	return begun(t, what, func(self string, spec run.Spec) Finished { return carryOut(ctx, self, task{spec, time.Minute}) })
}

// begun carries out a run, and returns when the run says that it has begun.
func begun(t *testing.T, what string, carryOut func(self string, spec run.Spec) Finished) (done <-chan Finished) {
	t.Helper()
	t.Setenv(actVariable, what)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "quiet")
	over := make(chan Finished, 1)
	go func() { over <- carryOut(self, run.Spec{Scenario: "quiet", Out: dir}) }()
	for _, err := os.Stat(dir + ".begun"); err != nil; _, err = os.Stat(dir + ".begun") {
		select {
		case f := <-over:
			t.Fatalf("it ended before it had begun: %+v", f)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return over
}

// A run that was judged does not count as interrupted, even if it got the signal before it ended.
func TestARunThatWasJudgedCounts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := hanging(t, ctx, "gets the signal to end when it is over")
	cancel()
	if f := <-done; f.Code != codeInconclusive || f.Problem != "" || f.Report == nil {
		t.Errorf("exit code %d, problem %q, report %v", f.Code, f.Problem, f.Report != nil)
	}
}

// The report of the first part of a run is not carried into the report of a suite that was ended.
// If the run took too long, its violations count, and it is known why it is not over.
func TestAReportOfAFirstPart(t *testing.T) {
	const what = "leaves a report of its first part"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := hanging(t, ctx, what)
	cancel()
	if f := <-done; !f.Stopped || f.Problem != interrupted || f.Report != nil {
		t.Errorf("the suite was ended: %+v", f)
	}
	limited, tooLong := context.WithCancel(t.Context()) // ends when the run has begun, however long that takes
	defer tooLong()
	done = begun(t, what, func(self string, spec run.Spec) Finished {
		return processUntil(limited, t.Context(), self, time.Second, spec)
	})
	tooLong()
	if f := <-done; !f.Stopped || f.Code != 1 || !strings.Contains(f.Problem, "not over after 1s") || f.Report == nil {
		t.Errorf("it took too long: exit code %d, problem %q, report %v", f.Code, f.Problem, f.Report != nil)
	}
}

// report is a possible report of a run.
func report(outcome invariant.Outcome, verdicts ...reports.Invariant) *reports.RunReport {
	return &reports.RunReport{
		Metadata: reports.Metadata{Complete: true, From: "v1.36.3", To: "v1.37.1"}, Invariants: verdicts,
		Verdict: reports.Verdict{Outcome: outcome, Sentence: "It was seen that…"}, Reproduce: "skewproof run quiet",
	}
}

func core(name string, v invariant.Outcome) reports.Invariant {
	i := reports.Invariant{Verdict: invariant.Verdict{Name: name, Grade: invariant.GradeCore, Outcome: v, About: true}}
	if v == invariant.OutcomeInconclusive {
		i.Reason = "too little pressure"
	}
	return i
}

// Only a run that was judged and passed counts as passed.
func TestWhatAScenarioComesTo(t *testing.T) {
	passed, failed, open := invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive
	for name, c := range map[string]struct {
		run    Finished
		want   reports.Result
		reason string
	}{
		"passed":                    {Finished{Code: 0, Report: report(passed, core("NoLoop", passed))}, reports.ResultPassed, ""},
		"violated":                  {Finished{Code: 1, Report: report(failed, core("NoLoop", failed))}, reports.ResultFailed, "violated: NoLoop"},
		"proved nothing":            {Finished{Code: 2, Report: report(open, core("NoLoop", open))}, reports.ResultInconclusive, "too little pressure"},
		"nothing passed":            {Finished{Code: 2, Report: report(open)}, reports.ResultInconclusive, "showed nothing"},
		"not for it":                {Finished{Code: 4, Problem: "exit code 4: needs two versions"}, reports.ResultSkipped, "needs two versions"},
		"could not be run":          {Finished{Code: 3, Problem: "exit code 3: no etcd"}, reports.ResultInconclusive, "no etcd"},
		"cut short and passed":      {Finished{Code: 3, Problem: "cut short", Report: report(passed, core("NoLoop", passed))}, reports.ResultInconclusive, "cut short"},
		"cut short and violated":    {Finished{Code: 1, Problem: "", Report: report(failed, core("NoLoop", failed))}, reports.ResultFailed, "violated"},
		"hung with a verdict: fail": {Finished{Code: -1, Problem: "not over", Report: report(failed, core("NoLoop", failed))}, reports.ResultFailed, "violated"},
	} {
		t.Run(name, func(t *testing.T) {
			k := Case{Outcome: Outcome{Scenario: &reports.ConformanceScenario{}}}
			s := k.Scenario
			k.finish(c.run)
			if s.Core.Result != c.want || !strings.Contains(s.Core.Reason, c.reason) {
				t.Errorf("%s (%s), want %s with a reason like %q", s.Core.Result, s.Core.Reason, c.want, c.reason)
			}
		})
	}
}

// A control run passes only if it violates the invariant that it must violate. Otherwise the
// harness is blind, or the run shows nothing.
func TestWhatAControlRunComesTo(t *testing.T) {
	passed, failed, open := invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive
	unshown := func(name string) reports.Invariant {
		i := core(name, open)
		i.Control, i.Unshown = true, true
		return i
	}
	for name, c := range map[string]struct {
		run  Finished
		want reports.Result
	}{
		"violated what it must": {
			Finished{Code: 1, Report: report(failed, core("NoFalseNotFound", failed), core("NoLoop", passed), core("Converges", failed))}, reports.ResultPassed,
		},
		"violated something else": {
			Finished{Code: 1, Report: report(failed, core("NoFalseNotFound", passed), core("NoLoop", failed), core("Converges", passed))}, reports.ResultFailed,
		},
		"violated a part of it": {
			Finished{Code: 1, Report: report(failed, core("NoFalseNotFound", failed), core("Converges", passed))}, reports.ResultFailed,
		},
		"proved nothing of the rest": {
			Finished{Code: 1, Report: report(failed, core("NoFalseNotFound", failed), core("Converges", open))}, reports.ResultInconclusive,
		},
		"violated a part of it, nothing said of the rest": {
			Finished{Code: 1, Report: report(failed, core("NoFalseNotFound", passed), core("Converges", open))}, reports.ResultFailed,
		},
		"held in its own control":  {Finished{Code: 2, Report: report(open, core("NoFalseNotFound", failed), unshown("Converges"))}, reports.ResultFailed},
		"passed":                   {Finished{Code: 0, Report: report(passed, core("NoFalseNotFound", passed), core("Converges", passed))}, reports.ResultFailed},
		"proved nothing of it":     {Finished{Code: 2, Report: report(open, core("NoFalseNotFound", open), core("Converges", open))}, reports.ResultInconclusive},
		"could not be carried out": {Finished{Code: 3, Problem: "no etcd"}, reports.ResultInconclusive},
		"was cut short": {
			Finished{Code: 3, Problem: "no etcd any more", Report: report(open, core("NoFalseNotFound", passed), core("Converges", passed))}, reports.ResultInconclusive,
		},
		"was refused": {Finished{Code: 4, Problem: "exit code 4: it needs two versions"}, reports.ResultSkipped},
	} {
		t.Run(name, func(t *testing.T) {
			run := reports.ControlRun{MustViolate: []string{"NoFalseNotFound", "Converges"}}
			(&Case{Outcome: Outcome{Control: &run}}).finish(c.run)
			if run.Result != c.want || (run.Reason == "") != (c.want == reports.ResultPassed) {
				t.Errorf("%s (%s), want %s", run.Result, run.Reason, c.want)
			}
		})
	}
}

// If a run is killed, its kind cluster is not removed.
func TestARunOnKindHasTimeToRemoveItsCluster(t *testing.T) {
	for backend, want := range map[string]time.Duration{"local": shutdownGrace, "": shutdownGrace, "kind": KindShutdownGrace} {
		if got := shutdownGraceOf(run.Spec{Backend: backend}); got != want {
			t.Errorf("%s: %s to end, want %s", backend, got, want)
		}
	}
}

// All binaries that runs need are there before the first run. A binary that the user gives is not
// fetched.
func TestPreparingGetsEverythingThatRunsNeed(t *testing.T) {
	own := func(name, says string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+says+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	plan, err := run.Spec{Scenario: "quiet", From: "v1.36.3", To: "v1.37.1+without.batch.v1", Subject: "builtin"}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	plan.Spec.Binaries = binaries.Overrides{
		{Component: binaries.KubeAPIServer, Version: "v1.36.3"}: own("old", "Kubernetes v1.36.3"),
		{Component: binaries.KubeAPIServer, Version: "v1.37.1"}: own("new", "Kubernetes v1.37.1"),
		{Component: binaries.Etcd, Version: "v3.6.8"}:           own("etcd", "etcd Version: 3.6.7"),
	}
	o := Options{Out: filepath.Join(t.TempDir(), "out"), Console: silent}
	if err := o.Prepare(t.Context(), "quiet", []*run.Plan{plan}); err == nil || !strings.Contains(err.Error(), "3.6.7") {
		t.Errorf("error %v, want one about etcd, which is got last", err)
	}
	if _, err := os.Stat(o.Out); err == nil {
		t.Error("a directory is left in which nothing was run")
	}
}

// If a suite ran again into the directory of an earlier suite, its runs would be refused, and it
// would read the old reports as their results.
func TestPreparingRefusesADirectoryThatHoldsAReport(t *testing.T) {
	o := Options{Out: t.TempDir(), Console: silent}
	if err := o.Prepare(t.Context(), "quiet", nil); err != nil {
		t.Errorf("an empty directory is refused: %v", err)
	}
	if err := os.WriteFile(filepath.Join(o.Out, reports.ConformanceFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.Prepare(t.Context(), "quiet", nil); err == nil || !strings.Contains(err.Error(), "is not empty: it would mix two reports") {
		t.Errorf("error %v, want one that says that the directory is not empty", err)
	}
}

var silent = run.Console{Out: io.Discard, Progress: io.Discard}

// actVariable tells a copy of this test binary what to do in place of skewproof.
const actVariable = "SKEWPROOF_SUITE_ACT"

func TestMain(m *testing.M) {
	act := os.Getenv(actVariable)
	if act == "" {
		os.Exit(m.Run())
	}
	spec, err := run.ReadSpec(os.Stdin)
	if err != nil || os.Args[1] != RunSpecCommand {
		panic(fmt.Sprint(os.Args, err))
	}
	os.Exit(acts[act](spec.Out))
}
