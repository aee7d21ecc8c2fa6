package suite

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
)

// scenarioThat is a case of the scenario quiet with this result.
func scenarioThat(result reports.Result, reason string, seconds reports.Seconds) *Case {
	s := &reports.ConformanceScenario{Name: "quiet", Family: "upgrades", CarriedOut: reports.CarriedOut{DurationSeconds: seconds}}
	k := &Case{Name: "upgrades quiet", Labels: []string{"quiet", "smoke"}, dir: "scenarios/quiet", Outcome: Outcome{Scenario: s}}
	k.refuse(result, reason)
	return k
}

// Names do not contain labels, and the time of a case is the time of its run.
func TestJUnitNamesAndTimes(t *testing.T) {
	control := &Case{Name: "negative control quiet on none", Labels: []string{"control", "quiet"}}
	control.Control = &reports.ControlRun{
		Scenario: "quiet", Subject: "none", Result: reports.ResultPassed, CarriedOut: reports.CarriedOut{DurationSeconds: 42},
	}
	junit, err := junitOf([]*Case{scenarioThat(reports.ResultPassed, "", 81.5), control}, reports.ConformanceReport{Result: reports.ResultPassed})
	if err != nil {
		t.Fatal(err)
	}
	var got reporters.JUnitTestSuites
	if err := xml.Unmarshal(junit, &got); err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, c := range got.TestSuites[0].TestCases {
		cases = append(cases, fmt.Sprintf("%s %s %v", c.Classname, c.Name, c.Time))
	}
	want := []string{"conformance.upgrades quiet 81.5", "conformance.control quiet on none 42", "conformance verdict 0"}
	if !slices.Equal(cases, want) {
		t.Errorf("cases %q, want %q", cases, want)
	}
}

// A CI system must not show a suite as green if the suite shows nothing although none of its cases
// failed, such as a suite without any control run.
func TestJUnitIsNotGreenWhereNothingWasShown(t *testing.T) {
	const why = "there was no control run; 1 of 1 scenarios passed core"
	ended := scenarioThat(reports.ResultInconclusive, interrupted, 1)
	ended.Interrupted = true
	for name, c := range map[string]struct {
		only             *Case
		result           reports.Result
		failures, errors int
		told             bool // the case of the verdict says why
	}{
		"passed":                 {scenarioThat(reports.ResultPassed, "", 1), reports.ResultPassed, 0, 0, false},
		"passed, and no control": {scenarioThat(reports.ResultPassed, "", 1), reports.ResultInconclusive, 1, 0, true},
		"all skipped":            {scenarioThat(reports.ResultSkipped, "not here", 0), reports.ResultInconclusive, 1, 0, true},
		"not reached":            {scenarioThat(reports.ResultSkipped, reports.NotReached, 0), reports.ResultInconclusive, 1, 0, true},
		"failed":                 {scenarioThat(reports.ResultFailed, "404", 1), reports.ResultFailed, 2, 0, true},
		"proved nothing":         {scenarioThat(reports.ResultInconclusive, "too little", 1), reports.ResultInconclusive, 2, 0, true},
		"ended early":            {ended, reports.ResultInconclusive, 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			junit, err := junitOf([]*Case{c.only}, reports.ConformanceReport{Result: c.result, Sentence: why})
			if err != nil {
				t.Fatal(err)
			}
			var got reporters.JUnitTestSuites
			if err := xml.Unmarshal(junit, &got); err != nil {
				t.Fatal(err)
			}
			if got.Failures != c.failures || got.Errors != c.errors || strings.Contains(string(junit), why) != c.told {
				t.Errorf("%d failures and %d errors, want %d and %d, and that it says %q: %v:\n%s", got.Failures, got.Errors, c.failures, c.errors, why, c.told, junit)
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
	junit, err := junitOf([]*Case{scenarioThat(reports.ResultPassed, "", 1)}, c)
	if err != nil {
		t.Fatal(err)
	}
	var got reporters.JUnitTestSuites
	if err := xml.Unmarshal(junit, &got); err != nil {
		t.Fatal(err)
	}
	properties := map[string]string{}
	for _, p := range got.TestSuites[0].Properties.Properties {
		properties[p.Name] = p.Value
	}
	shown := strings.ReplaceAll(hostile, "\x1b", "\uFFFD") // XML does not allow this character
	want := map[string]string{"label": shown, "kube-apiserver v1.37.1": shown, "kube-apiserver v1.37.1 sha256": "0a1b"}
	if !maps.Equal(properties, want) || len(got.TestSuites) != 1 {
		t.Errorf("properties %q, want %q", properties, want)
	}
}
