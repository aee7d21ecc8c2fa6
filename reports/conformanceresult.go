package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// NotReached is the reason for a chosen scenario that was not run before the suite ended.
const NotReached = "not run: the suite was ended before it, or focused on others"

// InProfile is the result of a judged run in one profile, from the invariants of that grade.
func (r RunReport) InProfile(grade invariant.Grade) ProfileResult {
	var p ProfileResult
	var s invariant.Standing
	var reasons []string
	blind := false
	for _, i := range r.Invariants {
		if i.Grade != grade {
			continue
		}
		switch i.Outcome {
		case invariant.OutcomePass:
			p.Held = append(p.Held, i.Name)
		case invariant.OutcomeFail:
			s.Violated, s.New = true, s.New || !i.known()
			p.Violated = append(p.Violated, i.Name)
			p.New += i.New
			p.Findings = append(p.Findings, i.Findings...)
		case invariant.OutcomeInconclusive:
			p.Undecided = append(p.Undecided, i.Name)
			if i.matters() {
				reasons = append(reasons, i.Name+": "+i.Reason)
			}
			blind = blind || i.Control
		}
	}
	slices.Sort(p.Findings)
	p.Findings = slices.Compact(p.Findings)
	if !r.Metadata.Complete || r.Metadata.Error != "" {
		reasons = append(reasons, "the run ended early: "+r.Metadata.Error)
	}
	s.Undecided = len(reasons) > 0
	if blind { // a control that does not fail as it must proves nothing, whatever else it violates
		s = invariant.Standing{Undecided: true}
	}
	tested := len(p.Held)+len(p.Violated) > 0
	switch p.Result = resultOf(s); {
	case p.Result == ResultInconclusive:
		p.Reason = strings.Join(reasons, "; ")
	case p.Result != ResultFailed && tested && grade == invariant.GradeCore && r.Verdict.Outcome == invariant.OutcomeInconclusive && !r.Verdict.Strict:
		p.Result, p.Reason = ResultInconclusive, r.Verdict.Sentence // a profile is not decided if the whole run is not
	case len(p.Violated) > 0:
		p.Reason = "violated: " + strings.Join(p.Violated, ", ")
		if slices.Equal(r.Verdict.Failed, p.Violated) {
			p.Reason = r.Verdict.Sentence
		}
	case !tested && grade == invariant.GradeCore: // the demands of the KEP always matter
		p.Result, p.Reason = ResultInconclusive, nothingTested
	case !tested:
		p.Result, p.Reason = ResultSkipped, nothingTested
	}
	return p
}

// nothingTested is the reason for a run that says nothing about a profile.
const nothingTested = "the run showed nothing that an invariant of this profile is about"

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
		case ResultKnown:
			p.Known++
		case ResultFailed:
			p.Failed++
		case ResultInconclusive:
			p.Inconclusive++
		default:
			p.Skipped++
		}
	}
	p.Result = resultOf(invariant.Standing{
		Violated: p.Failed+p.Known > 0, New: p.Failed > 0, Undecided: p.Inconclusive > 0 || p.Passed+p.Known == 0 || notRun,
	})
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

// conclusion says first whether the KEP was violated, known or not, and then what is undecided.
func (c *ConformanceReport) conclusion() (Result, string) {
	core, extended := c.Profiles[0], c.Profiles[1]
	var cores []ProfileResult
	for _, s := range c.Scenarios {
		cores = append(cores, s.Core)
	}
	told := "the KEP was " + cmp.Or(violatedIn("scenario", cores), "not seen violated") + "; "
	notRun := len(c.named(ConformanceScenario.notRun))
	told += fmt.Sprintf("%d of %d scenarios passed core", core.Passed, len(c.Scenarios)) + alsoCounted(core.Known, "known") +
		alsoCounted(core.Failed, "failed") + alsoCounted(core.Inconclusive, "proved nothing") + alsoCounted(core.Skipped-notRun, "skipped") +
		alsoCounted(notRun, "not run")
	if c.Metadata.Strict && extended.Result != core.Result {
		told += fmt.Sprintf("; beyond the KEP, which counts with strict, %d failed, %d known and %d proved nothing", extended.Failed,
			extended.Known, extended.Inconclusive)
	}
	switch {
	case !c.Metadata.Complete && c.Control.Result != ResultPassed && c.Control.Result != ResultFailed:
		told += "; the run was ended early, before its negative control was done"
	case c.Control.Result != ResultPassed:
		told += "; the negative control did not show that this run could have failed (" + c.Control.Reason + ")"
	case !c.Metadata.Complete:
		told += "; the run was ended early"
	}
	return resultOf(c.Standing()), told
}
