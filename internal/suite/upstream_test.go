package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/upstreame2e"
	"github.com/skewproof/skewproof/reports"
)

// upstreamSpecs are the specs that "runs Kubernetes' tests" runs.
var upstreamSpecs = []string{"[sig-x] a", "[sig-x] b", "[sig-x] c"}

func init() {
	acts["runs Kubernetes' tests"] = runsKubernetesTests
	acts["leaves no results"] = leave
}

// leave leaves the report of a run that passed.
func leave(dir string) int {
	held := core("NoCrash", invariant.OutcomePass)
	held.Checked = 3
	left := report(invariant.OutcomePass, held)
	left.APIVersion, left.Kind, left.Timeline.BucketSeconds = reports.APIVersion, reports.Kind, 1
	if os.MkdirAll(dir, 0o700) != nil || reports.WriteAll(dir, *left) != nil {
		return 3
	}
	return 0
}

// runsKubernetesTests writes results. The file dir+".fails" names the specs that fail.
func runsKubernetesTests(dir string) int {
	fails, _ := os.ReadFile(dir + ".fails") // without the file, no spec fails
	results := fmt.Sprintf(`<testsuites><testsuite name="Kubernetes e2e suite" tests="%d" time="3">`, len(upstreamSpecs))
	for _, name := range upstreamSpecs {
		status, why := "passed", ""
		if slices.Contains(strings.Split(string(fails), "\n"), name) {
			status, why = "failed", `<failure message="" type="failed">planted</failure>`
		}
		results += fmt.Sprintf(`<testcase name="[It] %s" status="%s" time="1">%s</testcase>`, name, status, why)
	}
	path := run.Dir(dir).TestResults()
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil || os.WriteFile(path, []byte(results+"</testsuite></testsuites>"), 0o600) != nil {
		return 3
	}
	return leave(dir)
}

// testedBy is the result of a suite on a path. fails says by path which specs fail.
func testedBy(t *testing.T, does string, u Upstream, fails map[string][]string) reports.UpstreamTests {
	t.Helper()
	t.Setenv(actVariable, does)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u.Program, u.Out, u.Console = self, t.TempDir(), run.Console{Out: t.Output(), Progress: t.Output()}
	for path, specs := range fails {
		if err := os.WriteFile(filepath.Join(u.Out, path+".fails"), []byte(strings.Join(specs, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.check(); err != nil {
		t.Fatal(err)
	}
	runs, err := u.runs(upstreamSpecs, !u.OnlyFailed)
	if err != nil {
		t.Fatal(err)
	}
	result := reports.UpstreamTests{Metadata: reports.UpstreamMetadata{Path: u.Path, Subject: u.Spec.Subject}}
	u.carryOutRuns(t.Context(), &result, runs, upstreamSpecs, nil)
	result.Conclude()
	if err := Render(result, u.Out, u.Console); err != nil {
		t.Fatal(err)
	}
	return result
}

// A failure planted on the path counts, unless it is planted on the direct path as well.
func TestPlantedFailuresOfKubernetesTests(t *testing.T) {
	const tests = "runs Kubernetes' tests"
	for name, tc := range map[string]struct {
		does  string
		path  string
		fails map[string][]string
		want  reports.Result
		class reports.SpecClass // of the second spec
	}{
		"nothing is planted":         {tests, reports.PathOld, nil, reports.ResultPassed, reports.ClassPassed},
		"on the path":                {tests, reports.PathOld, map[string][]string{"old": {upstreamSpecs[1]}}, reports.ResultFailed, reports.ClassFailed},
		"on both":                    {tests, reports.PathOld, map[string][]string{"old": {upstreamSpecs[1]}, "direct": {upstreamSpecs[1]}}, reports.ResultPassed, reports.ClassDirectly},
		"directly":                   {tests, reports.PathOld, map[string][]string{"direct": {upstreamSpecs[1]}}, reports.ResultPassed, reports.ClassGained},
		"another one directly":       {tests, reports.PathOld, map[string][]string{"old": {upstreamSpecs[1]}, "direct": {upstreamSpecs[0]}}, reports.ResultFailed, reports.ClassFailed},
		"through the load balancer":  {tests, reports.PathBalancer, map[string][]string{"balancer": {upstreamSpecs[1]}}, reports.ResultFailed, reports.ClassFailed},
		"the path direct, one fails": {tests, reports.PathDirect, map[string][]string{"direct": {upstreamSpecs[1]}}, reports.ResultPassed, reports.ClassDirectly},
		"no results":                 {"leaves no results", reports.PathOld, nil, reports.ResultInconclusive, reports.ClassNotRun},
		"cannot run":                 {"cannot run", reports.PathOld, nil, reports.ResultInconclusive, reports.ClassNotRun},
	} {
		t.Run(name, func(t *testing.T) {
			got := testedBy(t, tc.does, Upstream{Path: tc.path}, tc.fails)
			if got.Result != tc.want || got.Specs[1].Class != tc.class {
				t.Errorf("%s (%s), the second spec is of the class %q; want %s, %q", got.Result, got.Sentence, got.Specs[1].Class, tc.want, tc.class)
			}
			if want := 2; tc.path != reports.PathDirect && len(got.Runs) != want {
				t.Errorf("%d runs, want %d: directly and on the path", len(got.Runs), want)
			}
		})
	}
}

// With OnlyFailed, the direct path runs after the tested one, and only if a spec failed there.
func TestOnlyFailedSpecsRunDirectly(t *testing.T) {
	const tests = "runs Kubernetes' tests"
	for name, tc := range map[string]struct {
		fails map[string][]string
		want  reports.Result
		class reports.SpecClass // of the second spec
		runs  []string
	}{
		"nothing fails":    {nil, reports.ResultPassed, reports.ClassPassed, []string{"old"}},
		"one on the path":  {map[string][]string{"old": {upstreamSpecs[1]}}, reports.ResultFailed, reports.ClassFailed, []string{"old", "direct"}},
		"one on both":      {map[string][]string{"old": {upstreamSpecs[1]}, "direct": {upstreamSpecs[1]}}, reports.ResultPassed, reports.ClassDirectly, []string{"old", "direct"}},
		"one directly":     {map[string][]string{"direct": {upstreamSpecs[1]}}, reports.ResultPassed, reports.ClassPassed, []string{"old"}},
		"another directly": {map[string][]string{"old": {upstreamSpecs[1]}, "direct": {upstreamSpecs[0]}}, reports.ResultFailed, reports.ClassFailed, []string{"old", "direct"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := testedBy(t, tests, Upstream{Path: reports.PathOld, OnlyFailed: true}, tc.fails)
			var runs []string
			for _, r := range got.Runs {
				runs = append(runs, r.Path)
			}
			if got.Result != tc.want || got.Specs[1].Class != tc.class || !slices.Equal(runs, tc.runs) {
				t.Errorf("%s (%s), the second spec is of the class %q, runs %q; want %s, %q, %q",
					got.Result, got.Sentence, got.Specs[1].Class, runs, tc.want, tc.class, tc.runs)
			}
		})
	}
}

func TestPlansOfKubernetesTests(t *testing.T) {
	for path, want := range map[string]struct {
		versions []string // of the servers at the start
		through  string
		replaced int
	}{
		reports.PathDirect:   {[]string{"v1.37.1", "v1.36.3", "v1.36.3"}, "b", 0},
		reports.PathOld:      {[]string{"v1.37.1", "v1.36.3", "v1.36.3"}, "b", 0},
		reports.PathBalancer: {[]string{"v1.36.3", "v1.36.3", "v1.36.3"}, "", 3},
	} {
		plan := upstreamPlan(path, "v1.36.3", "v1.37.1", "v1.37.1", upstreamSpecs)
		if err := plan.Validate(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		var versions []string
		for _, s := range plan.Servers {
			versions = append(versions, s.Version)
		}
		replaced, begun := 0, false
		for _, s := range plan.Steps {
			switch s.Action {
			case scenario.StartControllers, scenario.StartTests:
				if s.Server != want.through {
					t.Errorf("%s: %s goes through %q, want %q", path, s.Action, s.Server, want.through)
				}
				begun = begun || s.Action == scenario.StartTests
			case scenario.Replace:
				if replaced++; !begun || s.Version != "v1.37.1" {
					t.Errorf("%s: %s, and the tests have begun: %t", path, s, begun)
				}
			}
		}
		if !slices.Equal(versions, want.versions) || replaced != want.replaced {
			t.Errorf("%s: servers %q, %d replaced; want %q, %d", path, versions, replaced, want.versions, want.replaced)
		}
	}
	if pace(3) != 2*time.Second || pace(60) != 10*time.Second || pace(1000) != 30*time.Second {
		t.Errorf("the pace of an upgrade: %s, %s, %s", pace(3), pace(60), pace(1000))
	}
}

// If an upgrade continues after the tests, it has not been tested completely.
func TestTestsThatEndBeforeTheUpgrade(t *testing.T) {
	plan := &run.Plan{Schedule: upstreamPlan(reports.PathBalancer, "v1.36.3", "v1.37.1", "v1.37.1", upstreamSpecs)}
	var steps []reports.Step
	for i, s := range plan.Schedule.Steps {
		steps = append(steps, reports.Step{Sentence: s.String(), StartSeconds: reports.Seconds(10 * i), EndSeconds: reports.Seconds(10*i + 10)})
	}
	// The tests begin at 30 s, and the last server is ready at 90 s.
	for took, short := range map[time.Duration]bool{59 * time.Second: true, 61 * time.Second: false} {
		if got := tooShort(plan, &reports.RunReport{Steps: steps}, upstreame2e.Results{Took: took}); (got != "") != short {
			t.Errorf("tests of %s: %q, want a complaint: %t", took, got, short)
		}
	}
}

func TestAnEarlierSuiteMustFit(t *testing.T) {
	saved := reports.UpstreamTests{
		Metadata: reports.UpstreamMetadata{Path: reports.PathDirect, From: "v1.36.3", To: "v1.37.1", Tests: "v1.37.1"},
		Specs:    []reports.UpstreamSpec{{Name: "a", Outcome: reports.SpecPassed}},
	}
	for name, tc := range map[string]struct {
		alter func(*reports.UpstreamMetadata)
		want  string
	}{
		"it fits":       {func(*reports.UpstreamMetadata) {}, ""},
		"another path":  {func(m *reports.UpstreamMetadata) { m.Path = reports.PathOld }, "its path is old"},
		"another from":  {func(m *reports.UpstreamMetadata) { m.From = "v1.35.4" }, "give one of the same versions"},
		"another to":    {func(m *reports.UpstreamMetadata) { m.To = "v1.37.2" }, "give one of the same versions"},
		"another tests": {func(m *reports.UpstreamMetadata) { m.Tests = "v1.36.3" }, "give one of the same versions"},
	} {
		dir, altered := t.TempDir(), saved
		tc.alter(&altered.Metadata)
		altered.Specs = slices.Clone(saved.Specs)
		altered.Conclude()
		if err := reports.SaveTables(dir, altered); err != nil {
			t.Fatal(err)
		}
		u := Upstream{Path: reports.PathOld, Direct: dir}
		if err := u.check(); err != nil {
			t.Fatal(err)
		}
		results, err := u.earlier()
		switch {
		case tc.want == "" && (err != nil || results["a"].Outcome != reports.SpecPassed):
			t.Errorf("%s: %v, %v", name, results, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestACommandLineRepeatsARunOfKubernetesTests(t *testing.T) {
	u := Upstream{Path: reports.PathOld, Focus: "a|b"}
	if err := u.check(); err != nil {
		t.Fatal(err)
	}
	runs, err := u.runs(upstreamSpecs, !u.OnlyFailed)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"skewproof upstream-e2e --path direct --from v1.36.3 --to v1.37.1 --tests v1.37.1 --focus 'a|b' --etcd ",
		"skewproof upstream-e2e --path old --from v1.36.3 --to v1.37.1 --tests v1.37.1 --subject builtin --focus 'a|b' --etcd ",
	} {
		if got := runs[i].plan.Spec.Command(); !strings.HasPrefix(got, want) || strings.Contains(got, "--qps") || strings.Contains(got, "--backend") {
			t.Errorf("got %s, want %s…", got, want)
		}
	}
}

// Violations of the run itself also count. On the direct path, only a crash counts.
func TestViolationsBesideKubernetesTests(t *testing.T) {
	beyond := core("Available", invariant.OutcomeFail)
	beyond.Grade = invariant.GradeExtended
	judged := report(invariant.OutcomeFail, core("NoCrash", invariant.OutcomeFail), core("NoWrongfulDeletion", invariant.OutcomeFail), beyond)
	if got := violated(reports.PathDirect, judged); !slices.Equal(got, []string{"NoCrash"}) {
		t.Errorf("directly: %q", got)
	}
	for _, path := range []string{reports.PathOld, reports.PathBalancer} {
		if got := violated(path, judged); !slices.Equal(got, []string{"NoCrash", "NoWrongfulDeletion"}) {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := violated(reports.PathOld, nil); got != nil {
		t.Errorf("a run without a report: %q", got)
	}
}
