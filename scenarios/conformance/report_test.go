package conformance

import (
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
