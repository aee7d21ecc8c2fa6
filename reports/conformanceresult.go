package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// NotReached is the reason for a chosen scenario that was not run before the suite ended.
const NotReached = "not run: the suite was ended before it, or focused on others"

// InProfile is the result of a judged run in one profile, from the invariants of that grade.
func (r RunReport) InProfile(grade invariant.Grade) ProfileResult {
	p := ProfileResult{Result: ResultSkipped}
	var reasons, unshown []string
	for _, i := range r.Invariants {
		if i.Grade != grade {
			continue
		}
		switch i.Outcome {
		case invariant.OutcomePass:
			p.Held = append(p.Held, i.Name)
			if p.Result == ResultSkipped {
				p.Result = ResultPassed
			}
		case invariant.OutcomeFail:
			p.Violated = append(p.Violated, i.Name)
			p.New += i.New
			p.Findings = append(p.Findings, i.Findings...)
		case invariant.OutcomeInconclusive:
			p.Undecided = append(p.Undecided, i.Name)
			if i.Control {
				unshown = append(unshown, i.Name+": "+i.Reason)
			}
			if i.matters() {
				reasons = append(reasons, i.Name+": "+i.Reason)
			}
		}
	}
	slices.Sort(p.Findings)
	p.Findings = slices.Compact(p.Findings)
	p.OnlyKnown = len(p.Violated) > 0 && p.New == 0 && len(p.Findings) > 0
	switch {
	case len(unshown) > 0:
		p.Result, p.Reason = ResultInconclusive, strings.Join(unshown, "; ")
	case len(p.Violated) > 0:
		p.Result, p.Reason = ResultFailed, "violated: "+strings.Join(p.Violated, ", ")
		if slices.Equal(r.Verdict.Failed, p.Violated) {
			p.Reason = r.Verdict.Sentence
		}
	case len(reasons) > 0:
		p.Result, p.Reason = ResultInconclusive, strings.Join(reasons, "; ")
	case !r.Metadata.Complete || r.Metadata.Error != "":
		p.Result, p.Reason = ResultInconclusive, "the run ended early: "+r.Metadata.Error
	case p.Result == ResultPassed && grade == invariant.GradeCore && r.Verdict.Outcome == invariant.OutcomeInconclusive && !r.Verdict.Strict:
		p.Result, p.Reason = ResultInconclusive, r.Verdict.Sentence // a profile never passes if the whole run does not pass
	case p.Result == ResultSkipped:
		p.Reason = "the run showed nothing that an invariant of this profile is about"
		if grade == invariant.GradeCore { // the demands of the KEP always matter
			p.Result = ResultInconclusive
		}
	}
	return p
}

// Conclude computes profiles, results and the sentence from the scenarios and control runs.
func (c *ConformanceReport) Conclude() {
	c.APIVersion, c.Kind = APIVersion, ConformanceKind
	c.Profiles = []Profile{
		profile(invariant.GradeCore, c.Scenarios, func(s ConformanceScenario) Result { return s.Core.Result }),
		profile(invariant.GradeExtended, c.Scenarios, func(s ConformanceScenario) Result { return s.Extended.Result }),
	}
	c.Control.conclude()
	c.Result, c.Sentence = c.conclusion()
}

func profile(name invariant.Grade, all []ConformanceScenario, result func(ConformanceScenario) Result) Profile {
	p := Profile{Name: name}
	notRun := false
	for _, s := range all {
		notRun = notRun || s.notRun()
		switch result(s) {
		case ResultPassed:
			p.Passed++
		case ResultFailed:
			p.Failed++
		case ResultInconclusive:
			p.Inconclusive++
		default:
			p.Skipped++
		}
	}
	switch {
	case p.Failed > 0:
		p.Result = ResultFailed
	case p.Inconclusive > 0 || p.Passed == 0 || notRun:
		p.Result = ResultInconclusive
	default:
		p.Result = ResultPassed
	}
	return p
}

func (c *ConformanceControl) conclude() {
	c.Result, c.Reason = ResultPassed, ""
	if len(c.Runs) == 0 {
		c.Result, c.Reason = ResultSkipped, "there was no control run"
	}
	for _, r := range c.Runs {
		switch {
		case r.Result == ResultPassed:
		case r.Result == ResultFailed:
			c.Result, c.Reason = ResultFailed, fmt.Sprintf("%s on %s: %s", r.Scenario, r.Subject, r.Reason)
			return
		case c.Result == ResultPassed:
			c.Result, c.Reason = ResultInconclusive, fmt.Sprintf("%s on %s: %s", r.Scenario, r.Subject, r.Reason)
		}
	}
}

func (c *ConformanceReport) conclusion() (Result, string) {
	core, extended := c.Profiles[0], c.Profiles[1]
	result := core.Result
	if c.Metadata.Strict && (extended.Failed > 0 || result == ResultPassed && extended.Inconclusive > 0) {
		result = extended.Result
	}
	told := fmt.Sprintf("%d of %d scenarios passed core", core.Passed, len(c.Scenarios))
	notRun := len(c.named(ConformanceScenario.notRun))
	told += alsoCounted(core.Failed, "failed") + alsoCounted(core.Inconclusive, "proved nothing") +
		alsoCounted(core.Skipped-notRun, "skipped") + alsoCounted(notRun, "not run")
	switch {
	case !c.Metadata.Complete && c.Control.Result != ResultPassed && c.Control.Result != ResultFailed:
		return ResultInconclusive, "the run was ended early, before its negative control was done; " + told
	case c.Control.Result != ResultPassed:
		return ResultInconclusive, "the negative control did not show that this run could have failed (" + c.Control.Reason + "); " + told
	case !c.Metadata.Complete && result != ResultFailed:
		return ResultInconclusive, "the run was ended early; " + told
	case result != core.Result:
		return result, fmt.Sprintf("%s; beyond the KEP, which counts with strict, %d failed and %d proved nothing", told, extended.Failed,
			extended.Inconclusive)
	default:
		return result, told
	}
}
