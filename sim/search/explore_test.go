package search

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

func init() { utilruntime.ErrorHandlers = nil } // faults cause answers that cannot be written; do not log these errors

func explored(t *testing.T, spec Spec, o Options) *reports.Campaign {
	t.Helper()
	s, err := Explore(spec, o)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Run(t.Context())
	for _, r := range c.Reached {
		if r.Impossible != "" && r.Schedules > 0 {
			t.Errorf("%s: %d schedules reached %s, which is listed as impossible: %s", c.Spec, r.Schedules, r.State, r.Impossible)
		}
	}
	return c
}

// panicking panics with every seed.
type panicking struct{}

func (panicking) Case(uint64) (*sim.Case, *tape.Tape) { panic("broken") }

// Each panic leaks coroutines, so a search that never stops would take all memory.
func TestPanicsWithoutEndEndASearch(t *testing.T) {
	o := Options{Seeds: 100 * mostPanics, Workers: 2, ShrinkRuns: -1}
	s, err := newSearch(specOf("reference", 2), o, reports.MethodRandom, func() source { return panicking{} })
	if err != nil {
		t.Fatal(err)
	}
	c := s.Run(t.Context())
	if len(c.Troubles) != 1 || c.Troubles[0].Schedules != 2*mostPanics || c.Complete || c.Verdict.Outcome != invariant.OutcomeInconclusive {
		t.Errorf("%+v, complete %t, %s; want %d panics of two workers, inconclusive", c.Troubles, c.Complete, c.Verdict.Outcome, 2*mostPanics)
	}
}

// deterministic removes the fields that depend on a clock.
func deterministic(t *testing.T, c *reports.Campaign) string {
	t.Helper()
	copied := *c
	copied.Parts, copied.ElapsedSeconds, copied.SchedulesPerSecond = nil, 0, 0
	body, err := json.Marshal(&copied)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestACampaignDependsOnItsSeedsAlone(t *testing.T) {
	spec := specOf("upstream-1.37", 3)
	o := Options{First: 90, Seeds: 25, Workers: 1, ShrinkRuns: 3, CauseRuns: 60}
	first := explored(t, spec, o)
	before := runtime.GOMAXPROCS(1)
	second := explored(t, spec, o)
	runtime.GOMAXPROCS(before)
	o.Workers = 3
	third := explored(t, spec, o)
	if a, b := deterministic(t, first), deterministic(t, second); a != b {
		t.Errorf("with one processor:\n%s\n%s", a, b)
	}
	if a, b := deterministic(t, first), deterministic(t, third); a != b {
		t.Errorf("with three workers:\n%s\n%s", a, b)
	}
	if first.Schedules != 25 || !first.Complete || first.Checks.Repeated != 1 || first.Checks.Differed != 0 {
		t.Errorf("%d schedules, complete %t, %+v", first.Schedules, first.Complete, first.Checks)
	}
}

// shrinkPlain shrinks only violations of plain requests, so that the test is quick.
func shrinkPlain(t *testing.T, c *reports.Campaign) {
	t.Helper()
	s, err := Explore(Spec(c.Spec), Options{Seeds: 1, ShrinkRuns: 800, CauseRuns: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Findings {
		f := &c.Findings[i]
		if (f.Finding == 0 || f.Finding == 1 || f.Finding == 6 || f.Finding == 3) && (f.Invariant == "NoFalseNotFound" || f.Invariant == "Available") {
			s.shrinkOne(t.Context(), f)
		}
	}
}

// People found these violations on real processes. Here a random search must find them.
func TestUpstreamsFaultsAreFoundUnaided(t *testing.T) {
	// From other seeds on, the first violation by a finding may need more than three disturbances.
	c := explored(t, specOf("upstream-1.37", 3), Options{First: 4001, Seeds: 700, ShrinkRuns: -1})
	shrinkPlain(t, c)
	if c.Verdict.Outcome != invariant.OutcomeFail && c.Verdict.Outcome != invariant.OutcomeKnown {
		t.Fatalf("%+v", c.Verdict)
	}
	for _, number := range []int{1, 3, 6} { // forgotten after a restart; no failover; ready, but answers a false 404
		i := slices.IndexFunc(c.Findings, func(f reports.CampaignFinding) bool { return f.Finding == number })
		switch {
		case i < 0:
			t.Errorf("finding %d: not found", number)
		case !c.Findings[i].Shrunk || c.Findings[i].Disturbances > 3:
			t.Errorf("finding %d: the smallest schedule has %d disturbances:\n%+v", number, c.Findings[i].Disturbances, c.Findings[i].Story)
		}
	}
	if t.Failed() {
		for _, f := range c.Findings {
			if f.Shrunk {
				t.Logf("%s\n%s", f.ViolationKind, f.Story)
			}
		}
	}
}

// reproOf is the repro of a finding.
func reproOf(t *testing.T, f reports.CampaignFinding) *Repro {
	t.Helper()
	r, err := decoded(f.Repro)
	if err != nil {
		t.Fatalf("%s: %v", f.ViolationKind, err)
	}
	return r
}

// A repro that is read back must give the same violation, and the same trace byte for byte.
func TestAReproOfASearchCanBeReplayed(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: 60, CauseRuns: -1})
	if len(c.Findings) == 0 {
		t.Fatal("nothing found")
	}
	for _, f := range c.Findings {
		r := reproOf(t, f)
		result, verdicts, err := r.Replay(false)
		if err != nil {
			t.Fatal(err)
		}
		if HashText(result.Hash) != r.Hash {
			t.Errorf("%s: the trace's hash is %s, and was %s", f.ViolationKind, HashText(result.Hash), r.Hash)
		}
		if !slices.ContainsFunc(Violations(findings.For(r.Spec.Policy), verdicts), func(v Violation) bool { return v.ViolationKind == f.ViolationKind }) {
			t.Errorf("%s is not seen any more", f.ViolationKind)
		}
	}
}

func TestReferenceHolds(t *testing.T) {
	c := explored(t, specOf("reference", 3), Options{Seeds: 300})
	for _, f := range c.Findings {
		if f.Grade == invariant.GradeCore {
			t.Errorf("%s\n%s\n%s", f.ViolationKind, f.Sentence, f.Story)
		}
	}
	if c.Checks.Differed > 0 || len(c.Troubles) > 0 {
		t.Errorf("%+v %+v", c.Checks, c.Troubles)
	}
	if c.PassedOn < c.Schedules/2 || c.States() < 18 {
		t.Errorf("requests were passed on in %d of %d schedules, %d states were reached: %+v", c.PassedOn, c.Schedules, c.States(), c.Reached)
	}
}

// A search that could not find anything must not look like a search that found nothing.
func TestAnEmptySearchIsInconclusive(t *testing.T) {
	same := Spec{Policy: "reference", From: newer, To: newer, Servers: 1, Resources: 3}
	if c := explored(t, same, Options{Seeds: 50}); c.Verdict.Outcome != invariant.OutcomeInconclusive {
		t.Errorf("one server: %+v", c.Verdict)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := Explore(specOf("reference", 3), Options{Seeds: 50})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Run(ended)
	if c.Verdict.Outcome != invariant.OutcomeInconclusive || c.Complete {
		t.Errorf("ended before it began: %+v, complete %t", c.Verdict, c.Complete)
	}
	few := explored(t, specOf("reference", 3), Options{Seeds: 1})
	if few.States() < reports.FewestStates && few.Verdict.Outcome != invariant.OutcomeInconclusive {
		t.Errorf("one schedule: %+v", few.Verdict)
	}
}

// Hundreds of simulators take some time to make. Ctrl-C must not wait for this.
func TestASearchCanBeEndedWhileItsWorkersAreMade(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	made := 0
	o := Options{Seeds: 50, Workers: 8, ShrinkRuns: -1}
	s, err := newSearch(specOf("reference", 2), o, reports.MethodRandom, func() source {
		if made++; made == 2 {
			cancel()
		}
		return panicking{}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Run(ctx)
	if made != 2 || c.Schedules != 0 || c.Complete || len(c.Troubles) > 0 {
		t.Errorf("%d workers were made, and the second ended the search: %d schedules, complete %t, troubles %v", made, c.Schedules, c.Complete, c.Troubles)
	}
}

func TestATimeEndsASearch(t *testing.T) {
	c := explored(t, specOf("reference", 2), Options{For: time.Millisecond, ShrinkRuns: -1})
	if !c.Complete || c.Wanted != 0 {
		t.Errorf("complete %t, wanted %d", c.Complete, c.Wanted)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no end": {}, "workers": {Seeds: 1, Workers: -1}, "too many workers": {Seeds: 1, Workers: MaxWorkers + 1}, "time": {For: -1, Seeds: 1},
	} {
		if _, err := Explore(specOf("reference", 3), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// This is the shape of a schedule for which the project measures its speed: three servers, twenty
// requests, a third of them forwarded, and faults.
func BenchmarkExplore(b *testing.B) {
	for _, policy := range []string{"reference", "upstream-1.37"} {
		b.Run(policy, func(b *testing.B) {
			s, err := Explore(specOf(policy, 3), Options{Seeds: uint64(b.N), ShrinkRuns: -1})
			if err != nil {
				b.Fatal(err)
			}
			c := s.Run(b.Context())
			b.ReportMetric(c.SchedulesPerSecond, "schedules/s")
		})
	}
}
