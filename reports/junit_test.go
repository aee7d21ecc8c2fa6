package reports

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/skewproof/skewproof/internal/invariant"
)

func parseJUnit(t *testing.T, r RunReport) reporters.JUnitTestSuites {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var suites reporters.JUnitTestSuites
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	return suites
}

// shown is what a CI system shows for a test case.
func shown(c reporters.JUnitTestCase) string {
	switch {
	case c.Failure != nil:
		return "failure: " + c.Failure.Message
	case c.Error != nil:
		return "error: " + c.Error.Message
	case c.Skipped != nil:
		return "skipped: " + c.Skipped.Message
	default:
		return "passed"
	}
}

func TestJUnitCases(t *testing.T) {
	for _, c := range []struct {
		name    string
		grade   invariant.Grade
		outcome invariant.Outcome
		about   bool
		strict  bool
		want    string
	}{
		{"core pass", invariant.GradeCore, invariant.OutcomePass, true, false, "passed"},
		{"core fail", invariant.GradeCore, invariant.OutcomeFail, false, false, "failure: S: violated 3 times"},
		{"core inconclusive", invariant.GradeCore, invariant.OutcomeInconclusive, false, false, "skipped: inconclusive: R"},
		{"core inconclusive that the scenario is about", invariant.GradeCore, invariant.OutcomeInconclusive, true, false,
			"error: inconclusive: R"},
		{"extended pass", invariant.GradeExtended, invariant.OutcomePass, false, false, "passed"},
		{"extended fail", invariant.GradeExtended, invariant.OutcomeFail, true, false,
			"skipped: beyond the KEP: violated 3 times; counts with strict only"},
		{"extended fail, strict", invariant.GradeExtended, invariant.OutcomeFail, false, true, "failure: S: violated 3 times"},
		{"extended inconclusive that the scenario is about", invariant.GradeExtended, invariant.OutcomeInconclusive, true, false,
			"skipped: inconclusive: R"},
		{"the same, strict", invariant.GradeExtended, invariant.OutcomeInconclusive, true, true, "error: inconclusive: R"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := invariant.Verdict{Name: "X", Grade: c.grade, Outcome: c.outcome, About: c.about, Sentence: "S", Checked: 1}
			switch c.outcome {
			case invariant.OutcomeFail:
				v.Violations = 3
			case invariant.OutcomeInconclusive:
				v.Reason = "R"
			}
			sound := invariant.Verdict{Name: "Y", Grade: invariant.GradeCore, Outcome: invariant.OutcomePass, Checked: 1}
			r := New(smallRun(), []invariant.Verdict{v, sound}, Options{Strict: c.strict})
			suites := parseJUnit(t, r)
			suite := suites.TestSuites[0]
			if got := shown(suite.TestCases[0]); got != c.want {
				t.Errorf("shown as %q, want %q", got, c.want)
			}
			green := suites.Failures+suites.Errors == 0
			if pass := r.Verdict.Outcome == invariant.OutcomePass; green != pass {
				t.Errorf("green is %v although the verdict is %s", green, r.Verdict.Outcome)
			}
			if suites.Tests != len(suite.TestCases) || suites.Failures != suite.Failures || suites.Errors != suite.Errors || suites.Disabled != suite.Skipped {
				t.Errorf("the totals %+v do not agree with the suite's", suites)
			}
		})
	}
}

// TestJUnitIsNeverGreenForNothing checks that a run is not green if it has no verdict, or only
// inconclusive verdicts. Such a run proves nothing.
func TestJUnitIsNeverGreenForNothing(t *testing.T) {
	for name, verdicts := range map[string][]invariant.Verdict{
		"no verdict":           nil,
		"nothing was examined": {{Name: "X", Grade: invariant.GradeCore, Outcome: invariant.OutcomeInconclusive, Reason: "not exercised"}},
	} {
		t.Run(name, func(t *testing.T) {
			suites := parseJUnit(t, New(smallRun(), verdicts, Options{}))
			if suites.Errors != 1 || suites.Tests != len(suites.TestSuites[0].TestCases) {
				t.Errorf("the run is shown as %+v, want one error", suites)
			}
		})
	}
}

func TestJUnitCarriesEvidence(t *testing.T) {
	suite := parseJUnit(t, small()).TestSuites[0]
	for _, c := range []struct {
		invariant int
		want      []string
	}{
		{0, []string{"asked b at 12.0 s", "404 NotFound: the server could not find the requested resource", "could have served it: a v1.37.1",
			"cut b→a", "handled by b", "and 2 kinds more"}},
		{2, []string{"only merged /apis of a (1): certificates.k8s.io/v1/clustertrustbundles"}},
	} {
		got := suite.TestCases[c.invariant].Failure.Description
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("the evidence of %s does not say %q:\n%s", suite.TestCases[c.invariant].Name, want, got)
			}
		}
	}
	if got := suite.TestCases[3].SystemOut; !strings.Contains(got, "b answered 500") {
		t.Errorf("what does not count has no evidence in its output:\n%s", got)
	}
}

// A JUnit file is kept and compared by other machines, so it has no directory of this one.
func TestWithoutPaths(t *testing.T) {
	for command, want := range map[string]string{
		"skewproof run quiet --subject builtin":                                    "skewproof run quiet --subject builtin",
		"skewproof run quiet --binary kube-apiserver@v1.37.1=/home/me/bin/patched": "skewproof run quiet --binary kube-apiserver@v1.37.1=…/patched",
		"skewproof run quiet --binary 'a=/home/my files/x'":                        "skewproof run quiet --binary 'a=…/my files/x'",
		"skewproof replay /tmp/a/b.json --known=/etc/own.yaml":                     "skewproof replay …/b.json --known=…/own.yaml",
		"skewproof replay _out/x/b.json":                                           "skewproof replay _out/x/b.json",
	} {
		if got := WithoutPaths(command); got != want {
			t.Errorf("%s is shortened to %s, want %s", command, got, want)
		}
	}
}
