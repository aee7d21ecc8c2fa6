package suite

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// A run that had not begun has no log, so no message names its log.
func TestBenchInterruptedBetweenRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := &Bench{Options: Options{Program: "/nosuch", Out: t.TempDir(), Console: silent}, Runs: 1}
	err := b.collect(ctx, []*repeated{{plan: &run.Plan{Spec: run.Spec{Scenario: "quiet"}}}})
	if want := "run 1 of quiet: ended before it had begun"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// Differing verdicts are counted once for each invariant of each scenario.
func TestBenchCountsDifferingVerdicts(t *testing.T) {
	sampled := func(wall int, outcomes ...invariant.Outcome) sample {
		s := sample{wall: reports.Seconds(wall), operations: 100 * wall}
		for i, o := range outcomes {
			s.verdicts = append(s.verdicts, reports.Invariant{Verdict: invariant.Verdict{Name: []string{"NoLoop", "NoCrash"}[i], Outcome: o}})
		}
		return s
	}
	const pass, fail, unknown = invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive
	of := func(name string) *run.Plan { return &run.Plan{Spec: run.Spec{Scenario: name}} }
	var out bytes.Buffer
	differs := &repeated{plan: of("x"), samples: []sample{sampled(30, pass, pass), sampled(10, fail, pass), sampled(20, unknown, pass)}}
	same := &repeated{plan: of("y"), samples: []sample{sampled(1, fail, fail), sampled(1, fail, fail)}}
	if outcome, err := compare(&out, []*repeated{same}); outcome != pass || err != nil {
		t.Errorf("%s where nothing differs, error %v", outcome, err)
	}
	if outcome, err := compare(&out, []*repeated{{plan: of("z"), samples: same.samples[:1]}, {plan: of("never")}}); outcome != unknown || err != nil {
		t.Errorf("%s where nothing ran twice, error %v", outcome, err)
	}
	out.Reset()
	if outcome, err := compare(&out, []*repeated{differs, same}); outcome != unknown || err != nil {
		t.Errorf("%s where a verdict differs, error %v", outcome, err)
	}
	for _, want := range []string{"skewproof run x; runs: 3\n", "10.0    20.0  30.0", "pass 1, fail 1, inconclusive 1\n", "pass 3\n", "fail 2\n", "1 of 4 verdicts differed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &out)
		}
	}
}
