package suite

import (
	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/skewproof/skewproof/reports"
)

// junitOf writes the suite's report as JUnit XML. The names are stable: the class of a case is
// "conformance." with the family of the scenario, or "conformance.control" for a control run, and
// its name is that of the scenario. The case [reports.OverallCase] is always there and shows the
// result of the conformance report, because a suite can prove nothing although no other case fails.
// With --known, a case is skipped if findings explain all its violations.
func junitOf(cases []*Case, c reports.ConformanceReport) ([]byte, error) {
	suite := reporters.JUnitTestSuite{
		Name: "skewproof conformance", Package: "conformance", Time: float64(c.Metadata.DurationSeconds),
		Timestamp: c.Metadata.StartedAt.Format("2006-01-02T15:04:05"),
	}
	suite.Properties.Properties = c.Product.Properties()
	known := false
	for _, k := range cases {
		known = known || k.Spec.Known != ""
		suite.TestCases = append(suite.TestCases, k.junit())
	}
	overall := reporters.JUnitTestCase{Classname: "conformance", Name: reports.OverallCase, Status: string(c.Result)}
	switch {
	case c.Result == reports.ResultPassed:
	case known && c.OnlyKnown():
		overall.Skipped = &reporters.JUnitSkipped{Message: "known: " + c.Sentence}
	default:
		overall.Failure = &reporters.JUnitFailure{Message: string(c.Result) + ": " + c.Sentence, Type: string(c.Result)}
	}
	suite.TestCases = append(suite.TestCases, overall)
	return reports.EncodeJUnit(suite)
}

// junit is the test case of a case.
func (k *Case) junit() reporters.JUnitTestCase {
	result, why := k.Result()
	t := reporters.JUnitTestCase{Time: k.Took().Seconds(), Status: string(result)}
	t.Classname, t.Name = k.junitName()
	switch {
	case k.Interrupted:
		t.Error = &reporters.JUnitError{Message: why, Type: "interrupted"}
	case k.onlyKnown():
		t.Skipped = &reporters.JUnitSkipped{Message: "known: " + why}
	case k.notReached(), result == reports.ResultSkipped:
		t.Skipped = &reporters.JUnitSkipped{Message: why}
	case result != reports.ResultPassed:
		t.Failure = &reporters.JUnitFailure{Message: why, Type: string(result)}
	}
	return t
}

// junitName is the class and the name of the case.
func (k *Case) junitName() (class, name string) {
	if k.Control != nil {
		return "conformance.control", k.Control.Scenario + " on " + k.Control.Subject
	}
	return "conformance." + k.Scenario.Family, k.Scenario.Name
}
