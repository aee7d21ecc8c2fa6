package suite

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// scenarioThat is a case of the scenario quiet with this result.
func scenarioThat(result reports.Result, reason string, seconds reports.Seconds) *Case {
	s := &reports.ConformanceScenario{Name: "quiet", Family: "upgrades", CarriedOut: reports.CarriedOut{DurationSeconds: seconds}}
	k := &Case{Name: "upgrades quiet", Labels: []string{"quiet", "smoke"}, dir: "scenarios/quiet", Outcome: Outcome{Scenario: s}}
	k.refuse(result, reason)
	return k
}

// junitSuite is the JUnit file of a suite, read back.
func junitSuite(t *testing.T, cases []*Case, c reports.ConformanceReport) reports.JUnitSuite {
	t.Helper()
	content, err := junitOf(cases, c)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Suite reports.JUnitSuite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	return document.Suite
}

// Names do not contain labels, and the time of a case is the time of its run.
func TestJUnitNamesAndTimes(t *testing.T) {
	control := &Case{Name: "negative control quiet on none", Labels: []string{"control", "quiet"}}
	control.Control = &reports.ControlRun{
		Scenario: "quiet", Subject: "none", Result: reports.ResultPassed, CarriedOut: reports.CarriedOut{
			DurationSeconds: 42, Page: "control/quiet/report.html", Reproduce: "skewproof run quiet --binary kube-apiserver@v1.37.1=/home/me/apiserver",
		},
	}
	got := junitSuite(t, []*Case{scenarioThat(reports.ResultPassed, "", 81.5), control}, reports.ConformanceReport{Result: reports.ResultPassed})
	var cases []string
	for _, c := range got.Cases {
		cases = append(cases, fmt.Sprintf("%s %s %v", c.Classname, c.Name, c.Time))
	}
	want := []string{"conformance.upgrades quiet 81.5", "conformance.control quiet on none 42", "conformance verdict 0"}
	if !slices.Equal(cases, want) {
		t.Errorf("cases %q, want %q", cases, want)
	}
	const says = "report: control/quiet/report.html\nrepeat: skewproof run quiet --binary kube-apiserver@v1.37.1=…/apiserver\n"
	if out := got.Cases[1].SystemOut; !strings.HasPrefix(out, says) {
		t.Errorf("the output of the control run is %q", out)
	}
}

// A CI system must not show a suite as green if the suite shows nothing although none of its cases
// failed, such as a suite without any control run.
func TestJUnitIsNotGreenWhereNothingWasShown(t *testing.T) {
	ended := scenarioThat(reports.ResultInconclusive, interrupted, 1)
	ended.Interrupted = true
	known := scenarioThat(reports.ResultKnown, "404", 1)
	lenient := scenarioThat(reports.ResultKnown, "404", 1)
	lenient.Spec.Known = run.KnownOnly
	controlled := []reports.ControlRun{{Scenario: "quiet", Subject: "none", Result: reports.ResultPassed}}
	for name, c := range map[string]struct {
		only             *Case
		controls         []reports.ControlRun
		failures, errors int
	}{
		"passed":                 {scenarioThat(reports.ResultPassed, "", 1), controlled, 0, 0},
		"passed, and no control": {scenarioThat(reports.ResultPassed, "", 1), nil, 0, 1},
		"all skipped":            {scenarioThat(reports.ResultSkipped, "not here", 0), controlled, 0, 1},
		"not reached":            {scenarioThat(reports.ResultSkipped, reports.NotReached, 0), controlled, 0, 1},
		"failed":                 {scenarioThat(reports.ResultFailed, "404", 1), controlled, 2, 0},
		"known":                  {known, controlled, 2, 0},
		"known, with --known":    {lenient, controlled, 0, 0},
		"proved nothing":         {scenarioThat(reports.ResultInconclusive, "too little", 1), controlled, 0, 2},
		"ended early":            {ended, controlled, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			report := reports.ConformanceReport{
				Metadata: reports.ConformanceMetadata{Complete: !c.only.Interrupted, Known: c.only.Spec.Known != ""}, Scenarios: []reports.ConformanceScenario{*c.only.Scenario},
				Control: reports.ConformanceControl{Runs: c.controls},
			}
			report.Conclude()
			got := junitSuite(t, []*Case{c.only}, report)
			if got.Failures != c.failures || got.Errors != c.errors {
				t.Errorf("%d failures and %d errors, want %d and %d:\n%+v", got.Failures, got.Errors, c.failures, c.errors, got)
			}
			if overall := got.Cases[len(got.Cases)-1]; !strings.Contains(fmt.Sprint(overall.Failure, overall.Error, overall.SystemOut), report.Sentence) {
				t.Errorf("the case of the verdict does not say %q:\n%+v", report.Sentence, got)
			}
		})
	}
}

// The binaries of a suite, and its label, are properties of its JUnit file, whatever characters
// they contain.
func TestJUnitIdentifiesWhatWasTested(t *testing.T) {
	const hostile = "<b>\x1b\"]]></property>"
	c := reports.ConformanceReport{Result: reports.ResultPassed}
	c.Product.Tested = reports.Tested{Label: hostile, Binaries: []history.Binary{{Component: "kube-apiserver", Version: "v1.37.1", Says: hostile, SHA256: "0a1b"}}}
	got := junitSuite(t, []*Case{scenarioThat(reports.ResultPassed, "", 1)}, c)
	properties := map[string]string{}
	for _, p := range got.Properties {
		properties[p.Name] = p.Value
	}
	shown := strings.ReplaceAll(hostile, "\x1b", "\uFFFD") // XML does not allow this character
	want := map[string]string{"label": shown, "kube-apiserver v1.37.1": shown, "kube-apiserver v1.37.1 sha256": "0a1b"}
	if !maps.Equal(properties, want) {
		t.Errorf("properties %q, want %q", properties, want)
	}
}
