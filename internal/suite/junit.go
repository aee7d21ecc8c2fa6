package suite

import (
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
)

// junitOf writes the suite's report as JUnit XML. The names are stable: the class of a case is
// "conformance." with the family of the scenario, or "conformance.control" for a control run, and
// its name is that of the scenario. The case [reports.OverallCase] is always there and shows the
// result of the conformance report, because a suite can prove nothing although no other case fails.
// With --known, a case passes if findings explain all its violations. The output of a case names
// the report of its run, relative to the file, and the command that repeats the run.
func junitOf(cases []*Case, c reports.ConformanceReport) ([]byte, error) {
	suite := reports.JUnitSuite{
		Name: "skewproof conformance", Package: "conformance", Time: reports.JUnitSeconds(c.Metadata.DurationSeconds),
		Timestamp: reports.NewJUnitTime(c.Metadata.StartedAt), Properties: c.Product.Properties(),
	}
	for _, k := range cases {
		suite.Cases = append(suite.Cases, k.junit())
	}
	suite.Cases = append(suite.Cases, reports.JUnitVerdict("conformance", c.Standing(), c.Sentence, c.Metadata.Known))
	return suite.Encode()
}

// junit is the test case of a case.
func (k *Case) junit() reports.JUnitCase {
	result, why := k.Result()
	c := k.carriedOut()
	t := reports.JUnitCase{Time: reports.JUnitSeconds(c.DurationSeconds), SystemOut: why}
	if c.Page != "" {
		t.SystemOut = "report: " + c.Page + "\nrepeat: " + reports.WithoutPaths(c.Reproduce) + "\n" + why
	}
	t.Classname, t.Name = k.junitName()
	switch {
	case k.Interrupted:
		t.Error = &reports.JUnitMessage{Message: why, Type: "interrupted"}
	case k.notReached(), result == reports.ResultSkipped:
		t.Skipped = &reports.JUnitMessage{Message: why}
	case result == reports.ResultPassed, result == reports.ResultKnown && k.Spec.Known != "":
	case result.Outcome() == invariant.OutcomeInconclusive:
		t.Error = &reports.JUnitMessage{Message: why, Type: string(result)}
	default:
		t.Failure = &reports.JUnitMessage{Message: why, Type: string(result)}
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
