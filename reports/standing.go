package reports

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Words are the four words of a verdict, on every page, in every table and on the terminal.
// [invariant.Standing.Outcome] decides which one applies. A flag never changes the word.
var words = map[invariant.Outcome]string{
	invariant.OutcomeFail: "FAIL", invariant.OutcomeInconclusive: "INCONCLUSIVE", invariant.OutcomeKnown: "KNOWN",
	invariant.OutcomePass: "PASS",
}

// Word is the word of an outcome.
func Word(o invariant.Outcome) string { return words[o] }

// outcomes are the outcomes of results.
var outcomes = map[Result]invariant.Outcome{
	ResultPassed: invariant.OutcomePass, ResultKnown: invariant.OutcomeKnown, ResultFailed: invariant.OutcomeFail,
	ResultInconclusive: invariant.OutcomeInconclusive, ResultSkipped: invariant.OutcomeInconclusive,
}

// Outcome is the outcome whose word, sign and colour stand for the result.
func (r Result) Outcome() invariant.Outcome { return outcomes[r] }

// resultOf is the result with the outcome of the standing.
func resultOf(s invariant.Standing) Result {
	for _, r := range []Result{ResultPassed, ResultKnown, ResultFailed} {
		if outcomes[r] == s.Outcome() {
			return r
		}
	}
	return ResultInconclusive
}

// known reports whether the invariant was violated and findings explain every violation.
func (i Invariant) known() bool {
	return i.Outcome == invariant.OutcomeFail && i.New == 0 && len(i.Findings) > 0
}

// Word is the word for the invariant in a table: a violation that findings explain is known.
func (i Invariant) Word() invariant.Outcome {
	if i.known() {
		return invariant.OutcomeKnown
	}
	return i.Outcome
}

// Standing says what the verdict on the run depends on. A run that was cut short is undecided.
func (r RunReport) Standing() invariant.Standing {
	verdicts := make([]invariant.Verdict, len(r.Invariants))
	for n, i := range r.Invariants {
		verdicts[n] = i.Verdict
	}
	s := invariant.Overall(verdicts, r.Verdict.Strict, func(n int) bool { return r.Invariants[n].known() })
	return s.And(invariant.Standing{Undecided: !r.Metadata.Complete || r.Metadata.Error != ""})
}

// standing says what the result of a scenario adds to that of its suite.
func (p ProfileResult) standing() invariant.Standing {
	return invariant.Standing{
		Violated:  len(p.Violated) > 0 || p.Result == ResultFailed || p.Result == ResultKnown,
		New:       p.Result == ResultFailed,
		Undecided: p.Result == ResultInconclusive,
	}
}

// Standing says what the result of the suite depends on.
func (c ConformanceReport) Standing() invariant.Standing {
	s := invariant.Standing{Undecided: !c.Metadata.Complete || c.Control.Result != ResultPassed}
	decided := false
	for _, x := range c.Scenarios {
		s = s.And(x.Core.standing()).And(invariant.Standing{Undecided: x.notRun()})
		if c.Metadata.Strict {
			s = s.And(x.Extended.standing())
		}
		decided = decided || x.Core.Result != ResultSkipped
	}
	return s.And(invariant.Standing{Undecided: !decided})
}

// Standing says what the result of the matrix depends on. Only the demands of the KEP count.
func (m VersionMatrix) Standing() invariant.Standing {
	s := invariant.Standing{Undecided: !m.Metadata.Complete}
	controls, tested := 0, 0
	for _, c := range m.Cells {
		switch {
		case c.Core.Result == ResultSkipped, c.Subject == subjectNone && !c.MustFail:
		case c.Subject == subjectNone:
			controls++
			s.Undecided = s.Undecided || !c.AsItMust()
		default:
			tested++
			s = s.And(c.Core.standing())
		}
	}
	return s.And(invariant.Standing{Undecided: controls == 0 || tested == 0})
}

// Standing says what the verdict on the search depends on.
func (c *Campaign) Standing() invariant.Standing {
	s := invariant.Standing{Undecided: c.undecided() != ""}
	for _, f := range c.Findings {
		if c.Decides(f.Grade) {
			s.Violated, s.New = true, s.New || f.Finding == 0
		}
	}
	return s
}

// violatedIn counts the results in which something was violated, and names the findings that
// explain it: "violated in 5 of 7 scenarios: findings 2 and 20, and NEW". It is "" if there are
// none.
func violatedIn(what string, all []ProfileResult) string {
	violated, isNew := 0, false
	var numbers []int
	for _, p := range all {
		s := p.standing()
		if !s.Violated {
			continue
		}
		violated++
		isNew = isNew || s.New
		numbers = append(numbers, p.Findings...)
	}
	if violated == 0 {
		return ""
	}
	slices.Sort(numbers)
	because := findingsNamed(slices.Compact(numbers))
	switch {
	case isNew && because != "":
		because += ", and NEW"
	case isNew:
		because = "NEW"
	default:
		because += "; nothing is new"
	}
	return fmt.Sprintf("violated in %d of %s: %s", violated, counted(len(all), what), because)
}

// findingsNamed names findings: "finding 2", "findings 2 and 20"; "" for none.
func findingsNamed(numbers []int) string {
	var all []string
	for _, n := range numbers {
		all = append(all, fmt.Sprint(n))
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "finding " + all[0]
	}
	return "findings " + conjunction(all)
}
