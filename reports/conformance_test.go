package reports

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
)

// smallConformance is a possible result of a conformance run, with something in every field.
func smallConformance() ConformanceReport {
	passed := ProfileResult{Result: ResultPassed, Held: []string{"NoFalseNotFound"}, Undecided: []string{"NoLoop"}}
	c := ConformanceReport{
		Metadata: ConformanceMetadata{
			Made: Made{time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), 6345.678, "v0.1.0"}, Labels: "smoke",
			Complete: true,
		},
		Product: Product{Name: "kube-apiserver's own Mixed Version Proxy", Version: "v2", URL: "https://example.com", Backend: "local",
			Subject: "builtin", From: "v1.36.3", To: "v1.37.1", Tested: testedForTests()},
		Scenarios: []ConformanceScenario{
			{
				Name: "quiet", Family: "upgrades", Happens: "Nothing is done.", Core: passed,
				Extended: ProfileResult{Result: ResultPassed, Held: []string{"Available"}},
				CarriedOut: CarriedOut{DurationSeconds: 50.5, Directory: "scenarios/quiet", Page: "scenarios/quiet/report.html",
					Reproduce: "skewproof run quiet"},
			},
			{
				Name: "rolling-upgrade", Family: "upgrades", Happens: "The servers are replaced.",
				Core: ProfileResult{Result: ResultFailed, Reason: "b answered 404.", Held: []string{"NoLoop"},
					Violated: []string{"NoFalseNotFound"}, New: 3, Findings: []int{2, 7}},
				Extended: ProfileResult{Result: ResultInconclusive, Reason: "Available: too little pressure", Undecided: []string{"Available"}},
			},
			{
				Name: "many-peers", Family: "scale", Happens: "Fifty servers.",
				Core:     ProfileResult{Result: ResultSkipped, Reason: "it does not run on local"},
				Extended: ProfileResult{Result: ResultSkipped, Reason: "it does not run on local"},
			},
		},
		Control: ConformanceControl{
			Runs: []ControlRun{{
				Scenario: "quiet", Subject: "none", Backend: "local", MustViolate: []string{"NoFalseNotFound", "Converges"}, Result: ResultPassed,
				Violated: []string{"NoFalseNotFound", "Converges"},
				CarriedOut: CarriedOut{DurationSeconds: 51, Directory: "control/quiet", Page: "control/quiet/report.html",
					Reproduce: "skewproof run quiet --subject none"},
			}},
			Unproven: []Unproven{{Scenario: "rolling-upgrade", Reason: "only a few control runs were asked for"}},
		},
		Reproduce: "skewproof conformance --labels smoke", Environment: []string{"2 CPUs"},
	}
	c.Conclude()
	return c
}

func encodedConformance(t testing.TB, c ConformanceReport) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteConformance(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Other programs read the document, its fields and the summary. None of them may change unnoticed.
func TestConformanceGolden(t *testing.T) {
	var summary bytes.Buffer
	if err := WriteConformanceSummary(&summary, smallConformance(), SummaryOptions{Dir: "_out"}); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := WriteConformanceHTML(&page, smallConformance()); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		ConformanceHTML: page.String(),
		ConformanceFile: encodedConformance(t, smallConformance()), "conformance.txt": summary.String(),
		"conformance-schema.txt": strings.Join(schema(reflect.TypeFor[ConformanceReport](), ""), "\n") + "\n",
	} {
		golden.Hold(t, filepath.Join("testdata", name), got)
	}
}

// schema lists the path and the type of each field of a document.
func schema(of reflect.Type, at string) []string {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return []string{at + " time"}
	case of.Kind() == reflect.Slice:
		return schema(of.Elem(), at+"[]")
	case of.Kind() != reflect.Struct:
		return []string{at + " " + of.Kind().String()}
	}
	var lines []string
	for i := range of.NumField() {
		name, option, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if !of.Field(i).Anonymous {
			name = "." + name
		}
		for _, line := range schema(of.Field(i).Type, at+name) {
			if option != "" {
				line += ", " + option
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// Every string of a report must be read back unchanged. Every string must be in one line, because
// people copy command lines out of the report.
func TestConformanceYAMLHoldsAnyString(t *testing.T) {
	poisoned := func(s string) ConformanceReport {
		c := smallConformance()
		poison(reflect.ValueOf(&c).Elem(), s)
		for n := range c.Scenarios { // a passed result has no reason and violated nothing, and no invariant has two verdicts
			for _, p := range []*ProfileResult{&c.Scenarios[n].Core, &c.Scenarios[n].Extended} {
				if p.Held = nil; p.Result == ResultPassed {
					p.Reason, p.Violated = "", nil
				} else if p.Violated != nil {
					p.Undecided = nil
				}
			}
		}
		c.Conclude() // restores the fields that follow from others
		return c
	}
	lines := strings.Count(encodedConformance(t, poisoned("word")), "\n")
	for _, s := range []string{
		"on", "No", "~", "null", "1", "1.5", "0x1f", "1:20", "1e3", "2026-11-21", "- a", "a: b", "a:", "a #b", "#c", " lead", "trail ", "'q",
		`"q"`, "two\nlines", "tab\t", "{}",
		"[1]", "&a", "*a", "!t", "|", ">", "%x", "@x", "`x`", "a\u00a0b", "é\u2028ü", "\u0085", "\ufeff", "y", "N", "=", "<<", "?", "? a", "!",
		"/x: y", "(a", "“b”", hostile,
		"skewproof run rolling-upgrade --backend local --subject builtin --from v1.36.3 --to v1.37.1 --etcd v3.6.8 --servers 3 --qps 240 --seed 1 --labels 'a && b'",
	} {
		want := poisoned(s)
		document := encodedConformance(t, want)
		got, err := conformanceReports.decode(strings.NewReader(document))
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q is read back differently (-written +read):\n%s", s, diff)
		}
		if !strings.Contains(s, "\n") && strings.Count(document, "\n") != lines {
			t.Errorf("%q: a string takes more than one line:\n%s", s, document)
		}
	}
}

// A result cannot be changed by editing one line.
func TestReadConformanceRefuses(t *testing.T) {
	good := encodedConformance(t, smallConformance())
	for name, c := range map[string]struct{ document, want string }{
		"nothing":           {" \n", "the file is empty"},
		"no YAML":           {"a: b: c", "not a YAML document"},
		"another kind":      {"apiVersion: v1\nkind: Pod\n", `apiVersion "v1", kind "Pod"`},
		"an unknown field":  {good + "colour: red\n", "colour"},
		"an altered result": {strings.Replace(good, "\nresult: failed", "\nresult: passed", 1), "the file was altered"},
		"an altered count":  {strings.Replace(good, "failed: 1", "failed: 0", 1), "the file was altered"},
		"an altered scenario": {strings.Replace(good, "result: failed\n      reason", "result: passed\n      reason", 1),
			"the file was altered"},
		"a pass that violated": {strings.Replace(good, "undecided:\n        - NoLoop", "violated:\n        - NoLoop", 1),
			"[NoLoop] violated: the file was altered"},
		"two verdicts": {strings.Replace(good, "held:\n        - NoLoop", "held:\n        - NoFalseNotFound", 1),
			"two verdicts on NoFalseNotFound: the file was altered"},
		"a pass with a reason": {strings.Replace(good, "result: passed\n      held", "result: passed\n      reason: b answered 404.\n      held",
			1), "the file was altered"},
		"an altered control": {strings.Replace(good, "result: passed\n      violated", "result: failed\n      reason: x\n      violated", 1),
			"the file was altered"},
		"an unknown result":    {strings.Replace(good, "result: skipped", "result: maybe", 1), `result "maybe"`},
		"no reason for a skip": {strings.Replace(good, "reason: it does not run on local", "violated: []", 1), "without a reason"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.document == good {
				t.Fatal("the document was not broken: this test would prove nothing")
			}
			if _, err := conformanceReports.decode(strings.NewReader(c.document)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}

// A run proves nothing if its negative control did not fail, or if it was ended early and found
// nothing, whatever its scenarios say.
func TestConformanceConclusion(t *testing.T) {
	scenario := func(core, extended Result) ConformanceScenario {
		return ConformanceScenario{Name: "x", Core: ProfileResult{Result: core, Reason: "r"},
			Extended: ProfileResult{Result: extended, Reason: "r"}}
	}
	fails := []ControlRun{{Result: ResultPassed}}
	for name, c := range map[string]struct {
		scenarios []ConformanceScenario
		control   []ControlRun
		strict    bool
		early     bool
		want      Result
	}{
		"all passed": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultPassed)}, control: fails,
			want: ResultPassed},
		"passed and skipped": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultPassed),
			scenario(ResultSkipped, ResultSkipped)}, control: fails, want: ResultPassed},
		"one inconclusive": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultPassed),
			scenario(ResultInconclusive, ResultPassed)}, control: fails, want: ResultInconclusive},
		"one failed": {scenarios: []ConformanceScenario{scenario(ResultFailed, ResultPassed),
			scenario(ResultInconclusive, ResultPassed)}, control: fails, want: ResultFailed},
		"all skipped": {scenarios: []ConformanceScenario{scenario(ResultSkipped, ResultSkipped)}, control: fails,
			want: ResultInconclusive},
		"no scenario": {control: fails, want: ResultInconclusive},
		"extended failed": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultFailed)}, control: fails,
			want: ResultPassed},
		"extended failed, strict": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultFailed)}, control: fails, strict: true,
			want: ResultFailed},
		"extended failed, core open": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultFailed),
			scenario(ResultInconclusive, ResultPassed)}, control: fails, strict: true, want: ResultFailed},
		"extended inconclusive, strict": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultInconclusive)}, control: fails,
			strict: true, want: ResultInconclusive},
		"a blind control": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultPassed)},
			control: []ControlRun{{Result: ResultPassed}, {Result: ResultFailed, Reason: "r"}}, want: ResultInconclusive},
		"a blind control, and something NEW": {scenarios: []ConformanceScenario{scenario(ResultFailed, ResultPassed)},
			control: []ControlRun{{Result: ResultFailed, Reason: "r"}}, want: ResultFailed},
		"a blind control, and a known violation": {scenarios: []ConformanceScenario{scenario(ResultKnown, ResultPassed)},
			control: []ControlRun{{Result: ResultFailed, Reason: "r"}}, want: ResultInconclusive},
		"one known": {scenarios: []ConformanceScenario{scenario(ResultKnown, ResultPassed), scenario(ResultPassed, ResultPassed)}, control: fails,
			want: ResultKnown},
		"one known, one inconclusive": {scenarios: []ConformanceScenario{scenario(ResultKnown, ResultPassed),
			scenario(ResultInconclusive, ResultPassed)}, control: fails, want: ResultInconclusive},
		"a control that was not run": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultPassed)},
			control: []ControlRun{{Result: ResultInconclusive, Reason: "r"}}, want: ResultInconclusive},
		"no control": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultPassed)}, want: ResultInconclusive},
		"ended early": {scenarios: []ConformanceScenario{scenario(ResultPassed, ResultPassed)}, control: fails, early: true,
			want: ResultInconclusive},
		"ended early after a violation": {scenarios: []ConformanceScenario{scenario(ResultFailed, ResultPassed)}, control: fails, early: true,
			want: ResultFailed},
	} {
		t.Run(name, func(t *testing.T) {
			report := ConformanceReport{Metadata: ConformanceMetadata{Complete: !c.early, Strict: c.strict}, Scenarios: c.scenarios,
				Control: ConformanceControl{Runs: c.control}}
			report.Conclude()
			if report.Result != c.want || report.Sentence == "" {
				t.Errorf("%s: %s, want %s", report.Result, report.Sentence, c.want)
			}
		})
	}
}

// People also read a profile alone. So a scenario that was not run, because the suite was ended,
// must not look as if it did not matter.
func TestNoProfilePassesOfWhichAPartWasNotRun(t *testing.T) {
	scenario := func(r Result, reason string) ConformanceScenario {
		p := ProfileResult{Result: r, Reason: reason}
		return ConformanceScenario{Name: "x", Core: p, Extended: p}
	}
	for reason, want := range map[string]Result{NotReached: ResultInconclusive, "it does not run on local": ResultPassed} {
		report := ConformanceReport{
			Scenarios: []ConformanceScenario{scenario(ResultPassed, ""), scenario(ResultSkipped, reason)},
			Control:   ConformanceControl{Runs: []ControlRun{{Result: ResultPassed}}},
		}
		report.Conclude()
		for _, p := range report.Profiles {
			if p.Result != want || p.Passed != 1 || p.Skipped != 1 {
				t.Errorf("%s: %+v, want it %s", reason, p, want)
			}
		}
	}
}

// A profile never passes if the whole run does not pass, even if a later skewproof treats other
// things as inconclusive.
func TestNoProfilePassesInAnInconclusiveRun(t *testing.T) {
	r := RunReport{
		Metadata: Metadata{Complete: true}, Verdict: Verdict{Outcome: invariant.OutcomeInconclusive, Sentence: "the moon was full."},
		Invariants: []Invariant{{Verdict: invariant.Verdict{Name: "A", Grade: invariant.GradeCore, Outcome: invariant.OutcomePass}}},
	}
	if p := r.InProfile(invariant.GradeCore); p.Result != ResultInconclusive || p.Reason != "the moon was full." {
		t.Errorf("%+v, want it inconclusive, with the reason of the run", p)
	}
}

// A run that was broken off shows nothing, even if all its results so far were good.
func TestNoProfilePassesInARunThatEndedEarly(t *testing.T) {
	for _, m := range []Metadata{{}, {Error: "etcd exited 1"}, {Complete: true, Error: "etcd exited 1"}} {
		r := RunReport{Metadata: m, Verdict: Verdict{Outcome: invariant.OutcomePass}, Invariants: []Invariant{
			{Verdict: invariant.Verdict{Name: "A", Grade: invariant.GradeCore, Outcome: invariant.OutcomePass}},
			{Verdict: invariant.Verdict{Name: "B", Grade: invariant.GradeExtended, Outcome: invariant.OutcomePass}},
		}}
		for _, grade := range []invariant.Grade{invariant.GradeCore, invariant.GradeExtended} {
			if p := r.InProfile(grade); p.Result != ResultInconclusive || !strings.Contains(p.Reason, "ended early") {
				t.Errorf("complete %v, error %q, %s: %+v, want it inconclusive", m.Complete, m.Error, grade, p)
			}
		}
	}
}

// A verdict on a run and a verdict on its profile must agree: no run may pass in one place and fail
// in the other.
func TestProfilesAgreeWithTheVerdict(t *testing.T) {
	result := map[invariant.Outcome]Result{
		invariant.OutcomePass: ResultPassed, invariant.OutcomeFail: ResultFailed, invariant.OutcomeInconclusive: ResultInconclusive,
	}
	outcomes := []invariant.Outcome{invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive}
	for n := range 9 * 8 {
		verdicts := []invariant.Verdict{
			{Name: "A", Grade: invariant.GradeCore, Outcome: outcomes[n%3], About: n/9%2 == 0, Reason: "r"},
			{Name: "B", Grade: invariant.GradeCore, Outcome: outcomes[n/3%3], About: n/18%2 == 0, Overloaded: n / 36, Reason: "r"},
		}
		r := RunReport{Metadata: Metadata{Complete: true}, Invariants: newInvariants(verdicts, nil, "builtin")}
		if p := r.InProfile(invariant.GradeCore); len(p.Held)+len(p.Violated)+len(p.Undecided) != len(verdicts) {
			t.Errorf("%+v has not all of %+v", p, verdicts)
		}
		if got, want := r.InProfile(invariant.GradeCore).Result, result[invariant.Overall(verdicts, false, nil).Outcome()]; got != want {
			t.Errorf("%s: the profile says %s, the verdict %s", fmt.Sprint(verdicts), got, want)
		}
		if got := r.InProfile(invariant.GradeExtended); got.Result != ResultSkipped || got.Reason == "" {
			t.Errorf("no extended invariant gives %+v", got)
		}
	}
}
