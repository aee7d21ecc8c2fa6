package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/skewproof/skewproof/reports"
)

// A spec whose run was under way before it began takes no time; in the JUnit file it takes as long as the run.
func TestJUnitShowsWhatRunsTook(t *testing.T) {
	spec := func(name string, left ...outcome) types.SpecReport {
		s := types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: name, State: types.SpecStatePassed, RunTime: 250 * time.Millisecond}
		for _, o := range left {
			s.ReportEntries = append(s.ReportEntries, types.ReportEntry{Name: entry, Value: types.WrapEntryValue(asJSON(o))})
		}
		return s
	}
	r := types.Report{SpecReports: types.SpecReports{
		spec("a-scenario", outcome{Scenario: &reports.ConformanceScenario{DurationSeconds: 81.5}}),
		spec("a-control", outcome{Control: &reports.ControlRun{DurationSeconds: 42}}),
		spec("skipped", outcome{Scenario: &reports.ConformanceScenario{}}),
		spec("nothing-left"),
	}}
	junit, err := junitOf(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a-scenario": "81.5", "a-control": "42", "skipped": "0.25", "nothing-left": "0.25"} {
		_, after, found := strings.Cut(string(junit), `name="[It] `+name+`"`)
		if _, after, _ = strings.Cut(after, ` time="`); !found || !strings.HasPrefix(after, want+`"`) {
			t.Errorf("%s does not take %s s:\n%s", name, want, junit)
		}
	}
	if r.SpecReports[0].RunTime != 250*time.Millisecond {
		t.Error("Ginkgo's own report was changed")
	}
}
