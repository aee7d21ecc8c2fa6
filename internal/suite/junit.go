package suite

import (
	"strings"

	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/skewproof/skewproof/reports"
)

// junitOf writes the suite's report as JUnit XML, with the names that Ginkgo gives to specs. A CI
// system then shows the same result as the conformance report: if no case failed but the result is
// not "passed", one additional case says why. With --known, a case is skipped if findings explain
// all its violations.
func junitOf(cases []*Case, c reports.ConformanceReport) ([]byte, error) {
	suite := reporters.JUnitTestSuite{
		Name: "skewproof conformance", Package: "conformance", Time: float64(c.Metadata.DurationSeconds),
		Timestamp: c.Metadata.StartedAt.Format("2006-01-02T15:04:05"),
	}
	suite.Properties.Properties = c.Product.Properties()
	red, known := false, false
	for _, k := range cases {
		known = known || k.Spec.Known != ""
		result, why := k.Result()
		t := reporters.JUnitTestCase{
			Classname: suite.Name, Name: "[It] conformance " + k.Name + " [" + strings.Join(k.Labels, ", ") + "]", Time: k.Took().Seconds(), Status: string(result),
		}
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
		red = red || t.Failure != nil || t.Error != nil
		suite.TestCases = append(suite.TestCases, t)
	}
	if c.Result != reports.ResultPassed && !red && !(known && c.OnlyKnown()) {
		suite.TestCases = append(suite.TestCases, reporters.JUnitTestCase{
			Classname: suite.Name, Name: "what the suite comes to", Status: string(c.Result),
			Failure: &reporters.JUnitFailure{Message: string(c.Result) + ": " + c.Sentence, Type: string(c.Result)},
		})
	}
	return reports.EncodeJUnit(suite)
}
