package reports

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
)

func parseJUnit(t *testing.T, r RunReport) JUnitSuite {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Suite JUnitSuite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	return document.Suite
}

// shown is what a CI system shows for a test case.
func shown(c JUnitCase) string {
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
		{"core fail", invariant.GradeCore, invariant.OutcomeFail, false, false, "failure: violated 3 times; what must hold: S"},
		{"core inconclusive", invariant.GradeCore, invariant.OutcomeInconclusive, false, false, "skipped: inconclusive: R"},
		{"core inconclusive that the scenario is about", invariant.GradeCore, invariant.OutcomeInconclusive, true, false,
			"error: inconclusive: R"},
		{"extended pass", invariant.GradeExtended, invariant.OutcomePass, false, false, "passed"},
		{"extended fail", invariant.GradeExtended, invariant.OutcomeFail, true, false,
			"skipped: beyond the KEP: violated 3 times; counts with strict only"},
		{"extended fail, strict", invariant.GradeExtended, invariant.OutcomeFail, false, true, "failure: violated 3 times; what must hold: S"},
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
			r := reportOf(smallRun(), []invariant.Verdict{v, sound}, Options{Strict: c.strict})
			suite := parseJUnit(t, r)
			if got := shown(suite.Cases[0]); got != c.want {
				t.Errorf("shown as %q, want %q", got, c.want)
			}
			green := suite.Failures+suite.Errors == 0
			if pass := r.Verdict.Outcome == invariant.OutcomePass; green != pass {
				t.Errorf("green is %v although the verdict is %s", green, r.Verdict.Outcome)
			}
			if suite.Tests != len(suite.Cases) {
				t.Errorf("%d cases are counted as %d", len(suite.Cases), suite.Tests)
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
			suite := parseJUnit(t, reportOf(smallRun(), verdicts, Options{}))
			if suite.Errors != 1 || suite.Tests != len(suite.Cases) {
				t.Errorf("the run is shown as %+v, want one error", suite)
			}
		})
	}
}

// With --known, what is known passes and says so. Without, it fails.
func TestJUnitOfWhatIsKnown(t *testing.T) {
	v := invariant.Verdict{Name: "X", Grade: invariant.GradeCore, Outcome: invariant.OutcomeFail, Violations: 1, Kinds: 1,
		Evidence: []invariant.Evidence{{Signature: rare, Count: 1}}}
	for known, want := range map[bool]int{false: 2, true: 0} {
		suite := parseJUnit(t, reportOf(smallRun(), []invariant.Verdict{v}, Options{Findings: catalogueForTests(), Known: known}))
		if suite.Failures != want || suite.Errors+suite.Skipped != 0 || !strings.Contains(suite.Cases[0].SystemOut, "verdict: known") {
			t.Errorf("known %t: %+v", known, suite)
		}
		if said := suite.Cases[0].SystemOut; known && !strings.Contains(said, "1 known (finding 1)") {
			t.Errorf("what passes does not name its finding: %s", said)
		}
	}
}

// GitLab shows only the text of a failure, and Jenkins refuses attributes that its schema lacks.
func TestJUnitIsForEveryViewer(t *testing.T) {
	r := small()
	r.Metadata.StartedAt = time.Time{}
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, no := range []string{`status="`, `disabled="`, `timestamp="`, "0001-01-01"} {
		if strings.Contains(b.String(), no) {
			t.Errorf("it has %s:\n%s", no, &b)
		}
	}
	for _, c := range parseJUnit(t, r).Cases {
		for _, m := range []*JUnitMessage{c.Failure, c.Error} {
			if m != nil && strings.TrimSpace(m.Text) == "" {
				t.Errorf("%s has no text", c.Name)
			}
		}
	}
}

// A server's own reason why it did not start is in its log, which a viewer of JUnit files does not
// have.
func TestJUnitCarriesTheReasonOfTheServer(t *testing.T) {
	h := smallRun()
	h.End.Error = "replace c: start kube-apiserver c: exit status 1; last lines of its log:\nstarting\nunknown flag: --x\n"
	suite := parseJUnit(t, reportOf(h, invariant.Judge(h), Options{}))
	verdict := suite.Cases[len(suite.Cases)-1]
	if said := cmp.Or(verdict.Error, verdict.Failure); said == nil || !strings.Contains(said.Text, "starting\nunknown flag: --x") {
		t.Errorf("the verdict is %+v", said)
	}
	for _, c := range suite.Cases[:len(suite.Cases)-1] {
		if said := fmt.Sprint(c.Error, c.Skipped); strings.Contains(said, "exit status 1") && !strings.Contains(said, "its last words: unknown flag: --x") {
			t.Errorf("%s: %s", c.Name, said)
		}
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
