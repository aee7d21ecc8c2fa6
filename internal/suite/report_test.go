package conformance

import (
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/skewproof/skewproof/reports"
)

// left is what Ginkgo tells of a spec that left something.
func left(name string, o outcome) types.SpecReport {
	return types.SpecReport{
		ContainerHierarchyTexts: []string{container}, LeafNodeText: name, State: types.SpecStatePassed,
		ReportEntries: types.ReportEntries{{Name: entry, Value: types.WrapEntryValue(asJSON(o))}},
	}
}

// A control run that is refused proves nothing and disproves nothing. If all are, nothing is left that shows that the run could have failed.
func TestARefusedControlLeavesItsScenarioUnproven(t *testing.T) {
	o := Options{Backend: "local", Labels: "quiet || peer-crash"}
	passed := reports.ProfileResult{Result: reports.ResultPassed}
	refused := func(name string) types.SpecReport {
		run := reports.ControlRun{Scenario: name, Subject: "none", MustViolate: []string{"NoFalseNotFound"}}
		judgeControl(&run, Finished{Code: codeUsage, Problem: "exit code 4: not here"})
		return left(controlContainer+" "+name+" on none", outcome{Control: &run})
	}
	of := func(family, name string) types.SpecReport {
		return left(family+" "+name, outcome{Scenario: &reports.ConformanceScenario{Name: name, Core: passed, Extended: passed}})
	}
	shown := left(controlContainer+" quiet on none", outcome{Control: &reports.ControlRun{Scenario: "quiet", Subject: "none", Result: reports.ResultPassed}})
	for name, c := range map[string]struct {
		controls       []types.SpecReport
		runs, unproven int
		want           reports.Result
	}{
		"none is refused": {[]types.SpecReport{shown, left(controlContainer+" peer-crash on none",
			outcome{Control: &reports.ControlRun{Scenario: "peer-crash", Subject: "none", Result: reports.ResultPassed}})}, 2, 0, reports.ResultPassed},
		"one is refused":  {[]types.SpecReport{shown, refused("peer-crash")}, 1, 1, reports.ResultPassed},
		"all are refused": {[]types.SpecReport{refused("quiet"), refused("peer-crash")}, 0, 2, reports.ResultInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			specs := append([]types.SpecReport{of("upgrades", "quiet"), of("processes", "peer-crash")}, c.controls...)
			r := o.Report(types.Report{SpecReports: specs}, nil)
			if r.Result != c.want || len(r.Control.Runs) != c.runs || len(r.Control.Unproven) != c.unproven {
				t.Errorf("%s (%s): %d control runs, %d unproven; want %s, %d and %d", r.Result, r.Sentence,
					len(r.Control.Runs), len(r.Control.Unproven), c.want, c.runs, c.unproven)
			}
		})
	}
}

// A suite of which a part was not run, whatever the reason, shows less than it was asked to: it never passes, however well the rest did.
func TestASuiteThatDidNotGetToItsEndNeverPasses(t *testing.T) {
	o := Options{Backend: "local", Labels: "quiet || peer-crash"}
	passed := reports.ProfileResult{Result: reports.ResultPassed}
	scenario := func(family, name string) types.SpecReport {
		return left(family+" "+name, outcome{Scenario: &reports.ConformanceScenario{Name: name, Core: passed, Extended: passed}})
	}
	control := func(name string) types.SpecReport {
		return left(controlContainer+" "+name+" on none", outcome{Control: &reports.ControlRun{Scenario: name, Subject: "none", Result: reports.ResultPassed}})
	}
	whole := func() []types.SpecReport {
		return []types.SpecReport{scenario("upgrades", "quiet"), scenario("processes", "peer-crash"), control("quiet"), control("peer-crash")}
	}
	for name, c := range map[string]struct {
		change func(specs []types.SpecReport) []types.SpecReport
		want   reports.Result
	}{
		"as it should be":                      {func(s []types.SpecReport) []types.SpecReport { return s }, reports.ResultPassed},
		"a scenario had not had its turn":      {func(s []types.SpecReport) []types.SpecReport { return slices.Delete(s, 1, 2) }, reports.ResultInconclusive},
		"a control run had not had its turn":   {func(s []types.SpecReport) []types.SpecReport { return s[:3] }, reports.ResultInconclusive},
		"what a scenario came to is not known": {func(s []types.SpecReport) []types.SpecReport { s[1].ReportEntries = nil; return s }, reports.ResultInconclusive},
		"what it left cannot be read": {func(s []types.SpecReport) []types.SpecReport {
			s[1].ReportEntries[0].Value = types.WrapEntryValue("{")
			return s
		}, reports.ResultInconclusive},
		"a run was interrupted": {func(s []types.SpecReport) []types.SpecReport {
			s[1] = left("processes peer-crash", outcome{Scenario: &reports.ConformanceScenario{Name: "peer-crash", Core: passed, Extended: passed}, Interrupted: true})
			return s
		}, reports.ResultInconclusive},
		"a spec was interrupted after all had come to something": {func(s []types.SpecReport) []types.SpecReport {
			s[3].State = types.SpecStateInterrupted
			return s
		}, reports.ResultInconclusive},
		"the suite was aborted": {func(s []types.SpecReport) []types.SpecReport { s[0].State = types.SpecStateAborted; return s }, reports.ResultInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			r := o.Report(types.Report{SpecReports: c.change(whole())}, nil)
			if r.Result != c.want || r.Metadata.Complete != (c.want == reports.ResultPassed) || len(r.Scenarios) != 2 || len(r.Control.Runs) != 2 {
				t.Errorf("%s (%s), complete %v, %d scenarios, %d control runs; want %s", r.Result, r.Sentence, r.Metadata.Complete, len(r.Scenarios), len(r.Control.Runs), c.want)
			}
		})
	}
}

// What has no control run is said to have none: nobody is to take its pass for more than it is.
func TestScenariosWithoutAControlAreNamed(t *testing.T) {
	o := Options{Backend: "local", Labels: "quiet"}
	unproven := []reports.Unproven{{Scenario: "openapi", Reason: "the catalogue names nothing that it must fail on"}}
	if got := o.Report(types.Report{}, unproven).Control.Unproven; !slices.Equal(got, unproven) {
		t.Errorf("unproven are %v, want %v", got, unproven)
	}
}
