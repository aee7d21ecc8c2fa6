package suite

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
)

// Case is one run of a conformance suite: of a scenario, or of a scenario on a subject on which it
// must fail.
type Case struct {
	// Name is "FAMILY SCENARIO", or "negative control SCENARIO on SUBJECT". It is stable.
	Name string
	// Labels are the labels by which Ginkgo may choose the case.
	Labels []string
	Spec   run.Spec
	// Limit is the longest time that the run may take.
	Limit time.Duration
	Outcome

	plan   *run.Plan // nil if the case is refused
	dir    string    // relative to the directory of the suite
	wanted bool      // chosen by labels
}

// Outcome is the result of a case, as data, because several processes may run the cases of a suite.
// One of Scenario and Control is set.
type Outcome struct {
	Scenario *reports.ConformanceScenario `json:"scenario,omitempty"`
	Control  *reports.ControlRun          `json:"control,omitempty"`
	// Subject is whose proxy the run tested, as the servers said; empty if nothing was judged.
	Subject string `json:"subject,omitempty"`
	// Interrupted is true if the run was ended because the suite was ended.
	Interrupted bool `json:"interrupted,omitempty"`
	// Log is the log file of the run's process. It is empty if there is none.
	Log string `json:"log,omitempty"`
}

// LabelControl marks control runs.
const LabelControl = "control"

// Cases checks the suite and returns its cases: the scenarios, then their control runs, in the
// order of the catalogue. It also returns the scenarios that have no control run, each with the
// reason.
func (c *Conformance) Cases() (cases []*Case, unproven []reports.Unproven, err error) {
	chosen, err := Choose(c.Labels)
	if err != nil {
		return nil, nil, err
	}
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	chooses, err := types.ParseLabelFilter(c.Labels)
	if err != nil { // Choose has already checked the labels
		return nil, nil, err
	}
	var controls []*Case
	for _, s := range chosen {
		k := c.scenarioCase(s)
		cases = append(cases, k)
		if k.plan == nil {
			continue // the scenario is skipped, so there is nothing to prove
		}
		switch control, why := c.controlCase(s); {
		case why != "":
			unproven = append(unproven, reports.Unproven{Scenario: s.Name, Reason: why})
		default:
			control.wanted = chooses(control.Labels) // "!control" does not choose it
			controls = append(controls, control)
		}
	}
	if c.Controls == ControlsFew {
		few := quickest(controls)
		for _, k := range controls {
			if !slices.Contains(few, k) {
				unproven = append(unproven, reports.Unproven{Scenario: k.Control.Scenario, Reason: "only a few control runs were asked for"})
			}
		}
		controls = few
	}
	return append(cases, controls...), unproven, nil
}

// specOf is the Spec of a scenario's run.
func (c *Conformance) specOf(s scenario.Scenario) run.Spec {
	spec := c.Spec
	spec.Scenario = s.Name
	if spec.Servers > 0 {
		spec.Servers = max(spec.Servers, s.MinServers)
	}
	return spec
}

func (c *Conformance) scenarioCase(s scenario.Scenario) *Case {
	k := &Case{Name: string(s.Family) + " " + s.Name, Labels: labels(s), Spec: c.specOf(s), dir: filepath.Join("scenarios", s.Name),
		wanted: true}
	k.Scenario = &reports.ConformanceScenario{Name: s.Name, Family: string(s.Family), Happens: s.Happens}
	k.refuse(reports.ResultSkipped, reports.NotReached)
	plan, err := k.Spec.Plan()
	switch {
	case !s.Limits.Allows(c.Spec.Backend):
		k.refuse(reports.ResultSkipped, "it "+s.Limits.OnBackends())
	case !s.Limits.AllowsSubject(k.Spec.Subject):
		k.refuse(reports.ResultSkipped, "it "+s.Limits.ForSubjects())
	case err != nil:
		k.refuse(reports.ResultSkipped, "it is not for this backend, subject or pair of versions: "+err.Error())
	default:
		k.plan, k.Limit = plan, run.Limit(plan.Schedule)
	}
	if s.Limits.Allows(c.Spec.Backend) {
		k.Scenario.Reproduce = k.Spec.Command()
	}
	return k
}

// controlCase returns the control run of a scenario, or why it has none.
func (c *Conformance) controlCase(s scenario.Scenario) (k *Case, why string) {
	subject := s.Control.Subject
	switch {
	case subject == "" && s.Control.Defect == "":
		return nil, "the catalogue names nothing that it must fail on"
	case subject == "":
		return nil, fmt.Sprintf("it must fail on the planted defect %q, which only the simulator's own tests plant ('make mutants')",
			s.Control.Defect)
	}
	spec := c.specOf(s)
	spec.Subject, spec.Strict = subject, false
	if spec.Backend == scenario.BackendExisting {
		// The servers of another owner cannot be made worse. The simulator shows that the same
		// plan, load and invariants can fail.
		spec = run.Spec{Scenario: s.Name, Backend: scenario.BackendSim, Subject: subject, OnlyReads: true}
	}
	if !s.Limits.Allows(spec.Backend) {
		return nil, "it " + s.Limits.OnBackends()
	}
	plan, err := spec.Plan()
	if err != nil {
		return nil, "it is not for this backend or pair of versions: " + err.Error()
	}
	k = &Case{
		Name: "negative control " + s.Name + " on " + subject, Labels: append([]string{LabelControl}, labels(s)...), Spec: spec,
		plan: plan, Limit: run.Limit(plan.Schedule), dir: filepath.Join(reports.ControlDir, s.Name),
	}
	k.Control = &reports.ControlRun{
		Scenario: s.Name, Subject: subject, Backend: spec.Backend, MustViolate: s.Control.Invariants,
		CarriedOut: reports.CarriedOut{Reproduce: spec.Command()},
		Result:     reports.ResultInconclusive, Reason: reports.NotReached,
	}
	return k, ""
}

// shows is one thing that a control run has to show.
type shows struct{ subject, invariant string }

// shows lists what the control run of a case has to show.
func (k *Case) shows() (all []shows) {
	for _, i := range k.Control.MustViolate {
		all = append(all, shows{k.Control.Subject, i})
	}
	return all
}

// quickest returns the quickest control run for each pair of a subject and an invariant that must
// be violated on it. One run may be the quickest for several pairs.
func quickest(controls []*Case) []*Case {
	shown, best := map[shows]bool{}, map[*Case]bool{}
	for _, k := range slices.SortedStableFunc(slices.Values(controls), func(a, b *Case) int { return cmp.Compare(a.Limit, b.Limit) }) {
		for _, s := range k.shows() {
			if !shown[s] {
				shown[s], best[k] = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(controls), func(k *Case) bool { return !best[k] })
}

// refuse gives a scenario a result in both profiles, with one reason.
func (k *Case) refuse(result reports.Result, reason string) {
	k.Scenario.Core = reports.ProfileResult{Result: result, Reason: reason}
	k.Scenario.Extended = k.Scenario.Core
}

// notReached reports whether nothing is known about the case because it was not run.
func (k *Case) notReached() bool {
	return k.Scenario != nil && k.Scenario.Core.Reason == reports.NotReached || k.Control != nil && k.Control.Reason == reports.NotReached
}

// task is the run of the case. out is the directory of the suite.
func (k *Case) task(out string) task {
	spec := k.Spec
	spec.Out = filepath.Join(out, k.dir)
	k.Log = spec.Out + ".log"
	return task{spec, k.Limit}
}

// CarryOut carries out the case, unless it is refused. A refused case already has a result that
// says why. program is skewproof, and out the directory of the suite.
func (k *Case) CarryOut(ctx context.Context, program, out string) {
	if k.plan == nil {
		return
	}
	if f := carryOut(ctx, program, k.task(out)); f.Begun {
		k.finish(f)
	}
}

// finish stores the result of the run.
func (k *Case) finish(f Finished) {
	k.Interrupted = f.Problem == interrupted
	c := k.carriedOut()
	c.Directory, c.DurationSeconds = k.dir, reports.SecondsOf(f.Took)
	if f.Report != nil {
		c.Page, c.Reproduce = filepath.ToSlash(filepath.Join(k.dir, reports.HTMLFile)), cmp.Or(f.Report.Reproduce, c.Reproduce)
	}
	if k.Scenario != nil {
		k.finishScenario(f)
	} else {
		k.Control.Reason = ""
		finishControl(k.Control, f)
	}
}

// carriedOut is the part of the outcome that says where the run was carried out.
func (k *Case) carriedOut() *reports.CarriedOut {
	if k.Scenario != nil {
		return &k.Scenario.CarriedOut
	}
	return &k.Control.CarriedOut
}

// finishScenario stores the result of the run of a scenario.
func (k *Case) finishScenario(f Finished) {
	s := k.Scenario
	switch {
	case f.Code == codeUsage: // because of the servers' versions, which are known only now; there is no directory
		s.DurationSeconds, s.Directory, s.Page = 0, "", ""
		k.refuse(reports.ResultSkipped, "it is not for this backend, subject or pair of versions: "+f.Problem)
		return
	case f.Report == nil || f.Problem != "" && !f.Report.Standing().Violated:
		k.refuse(reports.ResultInconclusive, f.Problem)
		return
	}
	s.Core, s.Extended = f.Report.InProfile(invariant.GradeCore), f.Report.InProfile(invariant.GradeExtended)
	k.Subject = f.Report.Metadata.Subject
	if m := f.Report.Metadata; m.From == m.To {
		s.Core, s.Extended = nothingSkewed(s.Core, m.To), nothingSkewed(s.Extended, m.To)
	}
}

// nothingSkewed changes the result of a run in which all servers have one version: a pass there
// would also happen without a proxy. The versions of servers that run already are not known before.
// Their control runs are in the simulator, where versions are mixed.
func nothingSkewed(p reports.ProfileResult, version string) reports.ProfileResult {
	if p.Result == reports.ResultPassed {
		p.Result, p.Reason = reports.ResultInconclusive, "all servers are "+version+": with one version nothing is skewed, and no proxy is needed"
	}
	return p
}

// finishControl says whether a control run failed as it must, by violating every invariant in
// MustViolate. If a control run is refused, its scenario is refused too. Such a run shows nothing,
// and it does not show that the harness is blind.
func finishControl(c *reports.ControlRun, f Finished) {
	switch {
	case f.Code == codeUsage:
		c.Result, c.Reason = reports.ResultSkipped, "it is not for this backend or pair of versions: "+f.Problem
		return
	case f.Report == nil || f.Problem != "":
		c.Result, c.Reason = reports.ResultInconclusive, f.Problem
		return
	}
	core, extended := f.Report.InProfile(invariant.GradeCore), f.Report.InProfile(invariant.GradeExtended)
	c.Violated = core.Violated
	var unseen, undecided []string
	for _, must := range c.MustViolate {
		switch {
		case slices.Contains(core.Violated, must) || slices.Contains(extended.Violated, must):
		case slices.ContainsFunc(f.Report.Invariants, func(i reports.Invariant) bool { return i.Name == must && i.Unshown }):
			unseen = append(unseen, must)
		case slices.Contains(core.Undecided, must) || slices.Contains(extended.Undecided, must):
			undecided = append(undecided, must)
		default:
			unseen = append(unseen, must)
		}
	}
	switch {
	case len(unseen) > 0:
		violated := cmp.Or(strings.Join(core.Violated, ", "), "nothing")
		c.Result = reports.ResultFailed
		c.Reason = "it must violate " + strings.Join(unseen, ", ") + " and violated " + violated +
			": the harness does not see what it is there to see"
	case len(undecided) > 0:
		c.Result, c.Reason = reports.ResultInconclusive, "nothing could be said about "+strings.Join(undecided, ", ")
	default:
		c.Result = reports.ResultPassed
	}
}

// Took is how long the run took. It is 0 if there was no run.
func (k *Case) Took() time.Duration {
	return time.Duration(float64(k.carriedOut().DurationSeconds) * float64(time.Second))
}

// Result returns the result of the case, and says in a sentence for people why it did not pass, or
// that a control failed as it must. The sentence is empty if a scenario passed.
func (k *Case) Result() (reports.Result, string) {
	if k.Interrupted {
		name := "the " + k.Name
		if k.Scenario != nil {
			name = k.Scenario.Name
		}
		return reports.ResultInconclusive, fmt.Sprintf("interrupted in %s (what its run had said is in %s); the rest of the suite is not run",
			name, k.Log)
	}
	if c := k.Control; c != nil {
		if c.Result == reports.ResultPassed {
			return c.Result, "passed: it failed as it must, and violated " + strings.Join(c.MustViolate, ", ")
		}
		return c.Result, string(c.Result) + ": " + c.Reason
	}
	for _, profile := range []struct {
		name   invariant.Grade
		result reports.ProfileResult
		counts bool
	}{
		{invariant.GradeCore, k.Scenario.Core, true},
		// The run of a scenario may show nothing of what is extended.
		{invariant.GradeExtended, k.Scenario.Extended, k.Spec.Strict && k.Scenario.Extended.Result != reports.ResultSkipped},
	} {
		if r := profile.result; profile.counts && r.Result != reports.ResultPassed {
			words := []string{fmt.Sprintf("%s, %s", r.Result, profile.name)}
			if len(r.Violated) > 0 {
				words = append(words, "violated "+strings.Join(r.Violated, ", "))
			}
			return r.Result, strings.Join(append(words, r.Reason), ": ")
		}
	}
	return reports.ResultPassed, ""
}
