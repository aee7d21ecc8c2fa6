package upstreame2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/reports"
)

// junit is a file of results with these cases.
func junit(n string, cases ...string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="` + n + `" time="3.7"><testsuite name="Kubernetes e2e suite" tests="` + n + `" time="3.7" timestamp="2026-11-23T23:38:26">` +
		strings.Join(cases, "\n") + "</testsuite></testsuites>\n"
}

func TestResultsAreRead(t *testing.T) {
	text := junit("11",
		`<testcase name="[SynchronizedBeforeSuite]" classname="Kubernetes e2e suite" status="passed" time="0.1"></testcase>`,
		`<testcase name="[It] [sig-x] passes" status="passed" time="1.5"></testcase>`,
		`<testcase name="[It] [sig-x] fails" status="failed" time="2"><failure message="" type="failed">[FAILED] no luck
at x.go:7</failure><system-err>much</system-err></testcase>`,
		`<testcase name="[It] [sig-x] times out" status="timedout" time="2"><failure message="" type="timedout">too slow</failure></testcase>`,
		`<testcase name="[It] [sig-x] panics" status="panicked" time="2"><error message="nil" type="panicked">trace</error></testcase>`,
		`<testcase name="[It] [sig-x] is interrupted" status="interrupted" time="2"><error message="" type="interrupted">by user</error></testcase>`,
		`<testcase name="[It] [sig-x] is aborted" status="aborted" time="2"><failure message="" type="aborted">gave up</failure></testcase>`,
		`<testcase name="[It] [sig-x] skips itself" status="skipped" time="0"><skipped message="skipped - no nodes"></skipped></testcase>`,
		`<testcase name="[It] [sig-x] is not in focus" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>`,
		`<testcase name="[It] [sig-x] is pending" status="pending" time="0"><skipped message="pending"></skipped></testcase>`,
		`<testcase name="[ReportAfterSuite] Kubernetes e2e suite report" status="passed" time="0"></testcase>`,
	)
	got, err := ReadResults(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Results{Took: 3700 * time.Millisecond, Specs: map[string]Result{
		"[sig-x] passes":          {Outcome: reports.SpecPassed, Took: 1500 * time.Millisecond},
		"[sig-x] fails":           {Outcome: reports.SpecFailed, Message: "[FAILED] no luck\nat x.go:7", Took: 2 * time.Second},
		"[sig-x] times out":       {Outcome: reports.SpecFailed, Message: "too slow", Took: 2 * time.Second},
		"[sig-x] panics":          {Outcome: reports.SpecFailed, Message: "panicked: nil\ntrace", Took: 2 * time.Second},
		"[sig-x] is interrupted":  {Outcome: reports.SpecNotRun, Message: "interrupted: \nby user", Took: 2 * time.Second},
		"[sig-x] is aborted":      {Outcome: reports.SpecNotRun, Message: "aborted: \ngave up", Took: 2 * time.Second},
		"[sig-x] skips itself":    {Outcome: reports.SpecSkipped, Message: "no nodes"},
		"[sig-x] is not in focus": {Outcome: reports.SpecNotRun, Message: "skipped"},
		"[sig-x] is pending":      {Outcome: reports.SpecNotRun, Message: "pending"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFailedSetupIsTold(t *testing.T) {
	got, err := ReadResults(strings.NewReader(junit("2",
		`<testcase name="[SynchronizedBeforeSuite]" status="failed" time="0.1"><failure message="" type="failed">no such host</failure></testcase>`,
		`<testcase name="[It] x" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>`)))
	if err != nil || got.Setup != "[SynchronizedBeforeSuite]: no such host" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if r := got.of("x"); r.Outcome != reports.SpecNotRun || !strings.Contains(r.Message, "no such host") {
		t.Errorf("the spec that was not run says %+v", r)
	}
}

func TestResultsThatContradictThemselvesAreRefused(t *testing.T) {
	passed := `<testcase name="[It] x" status="passed" time="1"></testcase>`
	for want, text := range map[string]string{
		"not a JUnit XML document":          "",
		"expected element type":             "<html></html>",
		"something follows its end":         junit("1", passed) + "<more/>",
		"it says that it has 2 cases":       junit("2", passed),
		"is there twice":                    junit("2", passed, passed),
		`unknown status "great"`:            junit("1", `<testcase name="[It] x" status="great" time="1"></testcase>`),
		`its status is "passed"`:            junit("1", `<testcase name="[It] x" status="passed" time="1"><failure>no</failure></testcase>`),
		`its status is "failed"`:            junit("1", `<testcase name="[It] x" status="failed" time="1"></testcase>`),
		`has the elements ["failure" "ski`:  junit("1", `<testcase name="[It] x" status="failed" time="1"><failure/><skipped/></testcase>`),
		"time -1: want seconds":             junit("1", `<testcase name="[It] x" status="passed" time="-1"></testcase>`),
		"time NaN: want seconds":            junit("1", `<testcase name="[It] x" status="passed" time="NaN"></testcase>`),
		"0 suites: want the one":            `<testsuites tests="0"></testsuites>`,
		"unexpected EOF":                    strings.TrimSuffix(junit("1", passed), "</testsuite></testsuites>\n"),
		"invalid character entity &nothing": junit("1", `<testcase name="[It] x&nothing;" status="passed" time="1"></testcase>`),
	} {
		if _, err := ReadResults(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAFileOfResultsIsNamedInErrors(t *testing.T) {
	path := t.TempDir() + "/junit_01.xml"
	if _, err := ReadResultsFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte("half of i"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadResultsFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// For all input, every result has a known outcome, and a result that did not pass has a reason.
func FuzzReadResults(f *testing.F) {
	f.Add(junit("1", `<testcase name="[It] x" status="passed" time="1"></testcase>`))
	f.Add(junit("1", `<testcase name="[It] x" status="failed" time="1"><failure message="a" type="failed">b</failure></testcase>`))
	f.Add(junit("1", `<testcase name="[It] x" status="skipped" time="0"><skipped message="skipped - y"></skipped></testcase>`))
	f.Fuzz(func(t *testing.T, text string) {
		results, err := ReadResults(strings.NewReader(text))
		if err != nil {
			return
		}
		for name, r := range results.Specs {
			switch r.Outcome {
			case reports.SpecPassed:
				if r.Message != "" {
					t.Errorf("%q passed, and says %q", name, r.Message)
				}
				if strings.Contains(text, "<testcase") && !strings.Contains(text, "passed") {
					t.Errorf("%q passed, and nothing says so", name)
				}
			case reports.SpecFailed, reports.SpecSkipped, reports.SpecNotRun:
			default:
				t.Errorf("%q has the outcome %q", name, r.Outcome)
			}
			if r.Took < 0 || len(r.Message) > maxMessage+8 {
				t.Errorf("%q took %s, and says %d bytes", name, r.Took, len(r.Message))
			}
		}
	})
}
