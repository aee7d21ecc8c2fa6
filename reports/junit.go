package reports

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

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
//	known          passed, with the findings in its        skipped, "beyond the KEP: …"
//	               output, if the run was made with
//	               --known; else failure
//	fail           failure                                 skipped, "beyond the KEP: …"
//	inconclusive   error if the scenario is about it,      skipped
//	               else skipped
//
// Core invariants always count, extended ones if the report is strict.
func WriteJUnit(w io.Writer, r RunReport) error {
	return junit(r).write(w)
}

// OverallCase is the name of the test case that shows the overall verdict. It is always there,
// because a run can prove nothing although no other case fails.
const OverallCase = "verdict"

// absolutePath matches the directory of an absolute path in a command line.
var absolutePath = regexp.MustCompile(`(^|[ ='"])/(?:[^ '"/]+/)+`)

// WithoutPaths shortens each absolute path in a command line to its last part, after an ellipsis.
func WithoutPaths(command string) string { return absolutePath.ReplaceAllString(command, "$1…/") }

func junit(r RunReport) JUnitSuite {
	m := r.Metadata
	suite := JUnitSuite{
		Name:      "skewproof " + m.Scenario,
		Package:   strings.Join([]string{m.Scenario, m.Backend, m.Subject}, "/"),
		Time:      JUnitSeconds(m.DurationSeconds),
		Timestamp: NewJUnitTime(m.StartedAt),
		Properties: append([]JUnitProperty{
			{"verdict", Word(r.Verdict.Outcome)},
			{"sentence", r.Verdict.Sentence},
			{"strict", strconv.FormatBool(r.Verdict.Strict)},
			{"from", m.From},
			{"to", m.To},
			{"seed", strconv.FormatUint(m.Seed, 10)},
			{"reproduce", WithoutPaths(r.Reproduce)},
			{"skewproofVersion", m.SkewproofVersion},
		}, m.Properties()...),
	}
	for _, i := range r.Invariants {
		suite.Cases = append(suite.Cases, testCase(r, i))
	}
	suite.Cases = append(suite.Cases, overall(r, suite.Package))
	return suite
}

// overall is the case of the overall verdict.
func overall(r RunReport, classname string) JUnitCase {
	c := JUnitVerdict(classname, r.Standing(), r.Verdict.Sentence, r.Verdict.Known)
	for _, m := range []*JUnitMessage{c.Failure, c.Error} {
		if m != nil && r.Metadata.Error != "" {
			m.Text = m.Message + "\n\nThe run ended early: " + r.Metadata.Error // with the last lines of a server's log
		}
	}
	return c
}

// JUnitVerdict is the case [OverallCase] of a run or a suite. known lets violations pass that
// findings explain.
func JUnitVerdict(classname string, s invariant.Standing, sentence string, known bool) JUnitCase {
	o := s.Outcome()
	c := JUnitCase{Name: OverallCase, Classname: classname}
	told := Word(o) + ": " + sentence
	switch {
	case o == invariant.OutcomePass, o == invariant.OutcomeKnown && known:
		c.SystemOut = told
	case o == invariant.OutcomeInconclusive:
		c.Error = &JUnitMessage{Message: told, Type: "inconclusive"}
	default:
		c.Failure = &JUnitMessage{Message: told, Type: "violated"}
	}
	return c
}

func testCase(r RunReport, i Invariant) JUnitCase {
	c := JUnitCase{
		Name: i.Name, Classname: strings.Join([]string{r.Metadata.Scenario, r.Metadata.Backend, r.Metadata.Subject}, "/"),
		SystemOut: factsText(i),
	}
	switch {
	case r.Verdict.Known && i.known() && r.Decides(i):
		c.SystemOut += "known: violated " + i.Accounted() + "\n" + evidenceText(i)
	case i.Outcome == invariant.OutcomeFail && r.Decides(i):
		c.Failure = &JUnitMessage{
			Message: fmt.Sprintf("violated %s; what must hold: %s", i.Accounted(), i.Sentence), Type: "violated", Text: evidenceText(i),
		}
	case i.Outcome == invariant.OutcomeFail:
		c.Skipped = &JUnitMessage{Message: fmt.Sprintf("beyond the KEP: violated %s; counts with strict only", i.Accounted())}
		c.SystemOut += evidenceText(i)
	case i.Outcome == invariant.OutcomeInconclusive && i.matters() && r.Decides(i):
		c.Error = &JUnitMessage{
			Message: "inconclusive: " + i.Reason, Type: "inconclusive",
			Text: "The scenario exists for this invariant, and the run proves nothing about it: " + i.Reason,
		}
		if !i.About {
			c.Error.Text = "The machine did not keep up, and the run proves nothing about this invariant: " + i.Reason
		}
	case i.Outcome == invariant.OutcomeInconclusive:
		c.Skipped = &JUnitMessage{Message: "inconclusive: " + i.Reason}
	}
	return c
}

func factsText(i Invariant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nverdict: %s\ngrade: %s\nchecked: %d\nviolations: %d\n", i.Sentence, i.Word(), i.Grade, i.Checked, i.Violations)
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
