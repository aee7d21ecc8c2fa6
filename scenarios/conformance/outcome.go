package conformance

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/shell"
	"github.com/skewproof/skewproof/reports"
)

// entry is the name under which a spec leaves what it came to, for the report at the end. It is JSON by then, since the specs of a suite
// may have run in several processes.
const entry = "outcome"

// outcome is what a spec came to: one of the two is set.
type outcome struct {
	Scenario *reports.ConformanceScenario `json:"scenario,omitempty"`
	Control  *reports.ControlRun          `json:"control,omitempty"`
	// Interrupted is true when its run did not come to its end.
	Interrupted bool `json:"interrupted,omitempty"`
}

// took is how long the run took. The spec may have been quicker: its run may have begun before.
func (o outcome) took() time.Duration {
	var seconds reports.Seconds
	switch {
	case o.Scenario != nil:
		seconds = o.Scenario.DurationSeconds
	case o.Control != nil:
		seconds = o.Control.DurationSeconds
	}
	return time.Duration(float64(seconds) * float64(time.Second))
}

// ofScenario is a scenario of which nothing is known yet, but how it can be repeated.
func (o *Options) ofScenario(s scenario.Scenario) *reports.ConformanceScenario {
	result := &reports.ConformanceScenario{Name: s.Name, Family: string(s.Family), Happens: s.Happens}
	if s.Limits.Allows(o.Backend) {
		result.Reproduce = shell.Line(append([]string{"skewproof", "run"}, o.words(s)...)...)
	}
	return result
}

// result is a control run of which nothing is known yet, but how it can be repeated.
func (c *control) result() *reports.ControlRun {
	return &reports.ControlRun{
		Scenario: c.Name, Subject: c.Control.Subject, Backend: c.backend, MustViolate: c.Control.Invariants,
		Reproduce: shell.Line(append([]string{"skewproof", "run"}, c.words...)...),
	}
}

// unsaid is a result in both profiles that has one reason.
func unsaid(s *reports.ConformanceScenario, result reports.Result, reason string) {
	s.Core = reports.ProfileResult{Result: result, Reason: reason}
	s.Extended = s.Core
}

// judgeScenario says what a run of a scenario came to.
func judgeScenario(s *reports.ConformanceScenario, f Finished) {
	s.DurationSeconds = reports.SecondsOf(f.Took)
	if f.Report != nil {
		s.Page, s.Reproduce = pageIn(s.Directory), cmp.Or(f.Report.Reproduce, s.Reproduce)
	}
	switch {
	case f.Code == codeUsage: // before it made its directory
		s.DurationSeconds, s.Directory, s.Page = 0, "", ""
		unsaid(s, reports.ResultSkipped, "it is not for this backend, subject or pair of versions: "+f.Problem)
		return
	case f.Report == nil || f.Problem != "" && f.Report.Verdict.Outcome != invariant.OutcomeFail:
		unsaid(s, reports.ResultInconclusive, f.Problem)
		return
	}
	s.Core, s.Extended = f.Report.InProfile(invariant.GradeCore), f.Report.InProfile(invariant.GradeExtended)
	if m := f.Report.Metadata; m.From == m.To {
		s.Core, s.Extended = nothingSkewed(s.Core, m.To), nothingSkewed(s.Extended, m.To)
	}
}

// nothingSkewed is what a run comes to in which all servers were of one version: what passes there would without a proxy, too. Of servers that run already
// it is not known before, and their control runs are of the simulator, in which versions are mixed.
func nothingSkewed(p reports.ProfileResult, version string) reports.ProfileResult {
	if p.Result == reports.ResultPassed {
		p.Result, p.Reason = reports.ResultInconclusive, "all servers are "+version+": with one version nothing is skewed, and no proxy is needed"
	}
	return p
}

// pageIn is where the page of a run lies, as a link.
func pageIn(directory string) string {
	return filepath.ToSlash(filepath.Join(directory, reports.HTMLFile))
}

// judgeControl says whether a control run failed as it must: by violating everything that it must. One that is refused, as its scenario then is, shows
// nothing, and is no sign of a blind harness either.
func judgeControl(c *reports.ControlRun, f Finished) {
	c.DurationSeconds = reports.SecondsOf(f.Took)
	if f.Report != nil {
		c.Page, c.Reproduce = pageIn(c.Directory), cmp.Or(f.Report.Reproduce, c.Reproduce)
	}
	switch {
	case f.Code == codeUsage:
		c.Result, c.Reason = reports.ResultSkipped, "it is not for this backend or pair of versions: "+f.Problem
		return
	case f.Report == nil || f.Problem != "":
		c.Result, c.Reason = reports.ResultInconclusive, f.Problem
		return
	}
	core := f.Report.InProfile(invariant.GradeCore)
	extended := f.Report.InProfile(invariant.GradeExtended)
	c.Violated = core.Violated
	var unseen, undecided []string
	for _, must := range c.MustViolate {
		switch {
		case slices.Contains(core.Violated, must) || slices.Contains(extended.Violated, must):
		case slices.Contains(core.Undecided, must) || slices.Contains(extended.Undecided, must):
			undecided = append(undecided, must)
		default:
			unseen = append(unseen, must)
		}
	}
	switch {
	case len(unseen) > 0:
		c.Result = reports.ResultFailed
		c.Reason = "it must violate " + strings.Join(unseen, ", ") + " and violated " + orNothing(core.Violated) + ": the harness does not see what it is there to see"
	case len(undecided) > 0:
		c.Result, c.Reason = reports.ResultInconclusive, "nothing could be said about "+strings.Join(undecided, ", ")
	default:
		c.Result = reports.ResultPassed
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
