package reports

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/skewproof/skewproof/internal/invariant"
)

// WriteJUnit writes the report as JUnit XML: one suite for the run, one test case for each
// invariant, and the case [OverallCase]. The names depend only on the scenario, the backend, the
// subject and the invariant, so that a dashboard can follow a case from run to run. No value is a
// path of the machine.
//
// It agrees with the overall verdict, so a run that proved nothing is never green:
//
//	verdict        counts towards the overall verdict      does not count
//	pass           passed                                  passed
//	fail           failure; skipped if it is known, and    skipped, "beyond the KEP: …"
//	               the report lets what is known pass
//	inconclusive   error if the scenario is about it,      skipped
//	               else skipped
//
// Core invariants always count, extended ones if the report is strict.
func WriteJUnit(w io.Writer, r RunReport) error {
	content, err := EncodeJUnit(junit(r))
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}

// EncodeJUnit counts the cases of a suite, and encodes it as a JUnit XML document. Its texts are
// [Printable], because viewers show them as they are.
func EncodeJUnit(suite reporters.JUnitTestSuite) ([]byte, error) {
	for _, c := range suite.TestCases {
		suite.Tests++
		switch {
		case c.Failure != nil:
			suite.Failures++
		case c.Error != nil:
			suite.Errors++
		case c.Skipped != nil:
			suite.Skipped++
		}
	}
	content, err := xml.MarshalIndent(reporters.JUnitTestSuites{
		Tests: suite.Tests, Disabled: suite.Skipped, Errors: suite.Errors, Failures: suite.Failures, Time: suite.Time,
		TestSuites: []reporters.JUnitTestSuite{suite},
	}, "", "  ")
	content = bytes.ReplaceAll(content, []byte("&#xD;"), []byte(" "))
	return append([]byte(xml.Header), append(bytes.Map(printable, content), '\n')...), err
}

// OverallCase is the name of the test case that shows the overall verdict. It is always there,
// because a run can prove nothing although no other case fails.
const OverallCase = "verdict"

// absolutePath matches the directory of an absolute path in a command line.
var absolutePath = regexp.MustCompile(`(^|[ ='"])/(?:[^ '"/]+/)+`)

// WithoutPaths shortens each absolute path in a command line to its last part, after an ellipsis.
func WithoutPaths(command string) string { return absolutePath.ReplaceAllString(command, "$1…/") }

func junit(r RunReport) reporters.JUnitTestSuite {
	m := r.Metadata
	suite := reporters.JUnitTestSuite{
		Name:      "skewproof " + m.Scenario,
		Package:   strings.Join([]string{m.Scenario, m.Backend, m.Subject}, "/"),
		Time:      float64(m.DurationSeconds),
		Timestamp: m.StartedAt.UTC().Format("2006-01-02T15:04:05"),
		Properties: reporters.JUnitProperties{Properties: []reporters.JUnitProperty{
			{Name: "verdict", Value: string(r.Verdict.Outcome)},
			{Name: "sentence", Value: r.Verdict.Sentence},
			{Name: "strict", Value: strconv.FormatBool(r.Verdict.Strict)},
			{Name: "from", Value: m.From},
			{Name: "to", Value: m.To},
			{Name: "seed", Value: strconv.FormatUint(m.Seed, 10)},
			{Name: "reproduce", Value: WithoutPaths(r.Reproduce)},
			{Name: "skewproofVersion", Value: m.SkewproofVersion},
		}},
	}
	suite.Properties.Properties = append(suite.Properties.Properties, m.Properties()...)
	for _, i := range r.Invariants {
		suite.TestCases = append(suite.TestCases, testCase(r, i))
	}
	suite.TestCases = append(suite.TestCases, overall(r, suite.Package))
	return suite
}

// overall is the case of the overall verdict.
func overall(r RunReport, classname string) reporters.JUnitTestCase {
	v := r.Verdict
	c := reporters.JUnitTestCase{Name: OverallCase, Classname: classname, Status: string(v.Outcome)}
	switch {
	case v.Outcome == invariant.OutcomePass:
	case v.Known && r.OnlyKnown():
		c.Skipped = &reporters.JUnitSkipped{Message: "known: " + v.Sentence}
	case v.Outcome == invariant.OutcomeFail:
		c.Failure = &reporters.JUnitFailure{Message: v.Sentence, Type: "violated"}
	default:
		c.Error = &reporters.JUnitError{Message: v.Sentence, Type: "inconclusive"}
	}
	return c
}

func testCase(r RunReport, i Invariant) reporters.JUnitTestCase {
	c := reporters.JUnitTestCase{
		Name: i.Name, Classname: strings.Join([]string{r.Metadata.Scenario, r.Metadata.Backend, r.Metadata.Subject}, "/"),
		Status: string(i.Outcome), SystemOut: factsText(i),
	}
	switch {
	case r.Verdict.Known && i.onlyKnown() && r.Decides(i):
		c.Skipped = &reporters.JUnitSkipped{Message: "known: violated " + i.Accounted()}
		c.SystemOut += evidenceText(i)
	case i.Outcome == invariant.OutcomeFail && r.Decides(i):
		c.Failure = &reporters.JUnitFailure{
			Message: fmt.Sprintf("%s: violated %s", i.Sentence, i.Accounted()), Type: "violated", Description: evidenceText(i),
		}
	case i.Outcome == invariant.OutcomeFail:
		c.Skipped = &reporters.JUnitSkipped{Message: fmt.Sprintf("beyond the KEP: violated %s; counts with strict only", i.Accounted())}
		c.SystemOut += evidenceText(i)
	case i.Outcome == invariant.OutcomeInconclusive && i.matters() && r.Decides(i):
		c.Error = &reporters.JUnitError{
			Message: "inconclusive: " + i.Reason, Type: "inconclusive",
			Description: "The scenario exists for this invariant, and the run proves nothing about it.",
		}
		if !i.About {
			c.Error.Description = "The machine did not keep up, and the run proves nothing about this invariant."
		}
	case i.Outcome == invariant.OutcomeInconclusive:
		c.Skipped = &reporters.JUnitSkipped{Message: "inconclusive: " + i.Reason}
	}
	return c
}

func factsText(i Invariant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\ngrade: %s\nchecked: %d\nviolations: %d\n", i.Sentence, i.Grade, i.Checked, i.Violations)
	for _, f := range i.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

// evidenceText writes the evidence as plain text.
func evidenceText(i Invariant) string {
	var b strings.Builder
	told, listed := i.told()
	for n, e := range told {
		fmt.Fprintf(&b, "\n%d. %s%s\n   seen %s, from %s to %s\n   %s\n", n+1, labelled(e), e.Sentence, times(e.Count), clock(e.FirstSeconds),
			clock(e.LastSeconds), e.Signature)
		for _, q := range e.Requests {
			fmt.Fprintf(&b, "   asked %s at %s: %s %s: %s\n", q.Server, clock(q.StartSeconds), q.Verb, q.Path, q.Answer())
		}
		for _, c := range e.Candidates {
			fmt.Fprintf(&b, "   could have served it: %s\n", e.Explain(c))
		}
		for _, h := range e.Hops {
			fmt.Fprintf(&b, "   handled by %s at %s: %s\n", h.Server, clock(h.StartSeconds), h.Account())
		}
		for _, o := range e.Objects {
			fmt.Fprintf(&b, "   in etcd at %s (revision %d): %s: %s\n", clock(o.AtSeconds), o.Revision, o.Title(), o.State())
		}
		if d := e.Difference; d != nil {
			fmt.Fprintf(&b, "   only %s (%d): %s\n", d.Left, d.OnlyLeftTotal, strings.Join(d.OnlyLeft, ", "))
			fmt.Fprintf(&b, "   only %s (%d): %s\n", d.Right, d.OnlyRightTotal, strings.Join(d.OnlyRight, ", "))
		}
		if p := e.Process; p != nil {
			fmt.Fprintf(&b, "   %s %s at %s: %s\n", p.Server, p.State, clock(p.AtSeconds), p.Detail)
		}
	}
	for _, e := range listed {
		fmt.Fprintf(&b, "\n%s%s: %s\n", labelled(e), times(e.Count), e.Signature)
	}
	if more := i.Kinds - len(i.Evidence); more > 0 {
		fmt.Fprintf(&b, "\nand %s more; all are in the history\n", counted(more, "kind"))
	}
	return b.String()
}

// labelled is the label of the evidence, for the beginning of a sentence.
func labelled(e Evidence) string {
	if label := e.Label(); label != "" {
		return label + ": "
	}
	return ""
}
