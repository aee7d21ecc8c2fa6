package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/replay"
	"github.com/skewproof/skewproof/sim/search"
	"github.com/skewproof/skewproof/sim/tape"
)

// simulated are clusters in virtual time. The n-th schedule over all clusters, from 1, may go
// wrong.
type simulated struct {
	schedules int
	left      map[int][]string // what remains of the schedules before
	breaks    map[int]error
	refuses   error // to open a cluster
	then      func(n int)
	lives     int // clusters that are open
}

func (s *simulated) Open(_ context.Context, out string) (Cluster, error) {
	if s.refuses != nil {
		return nil, s.refuses
	}
	s.lives++
	return &simulatedCluster{s, out}, os.Mkdir(out, 0o755)
}

type simulatedCluster struct {
	of  *simulated
	out string
}

func (c *simulatedCluster) Close() error   { c.of.lives--; return nil }
func (c *simulatedCluster) Discard() error { return os.RemoveAll(c.out) }

func (c *simulatedCluster) CarryOut(_ context.Context, p *run.Plan, dir run.Dir) (run.ScheduleResult, error) {
	c.of.schedules++
	n := c.of.schedules
	defer func() {
		if c.of.then != nil {
			c.of.then(n)
		}
	}()
	if left := c.of.left[n]; left != nil {
		return run.ScheduleResult{Left: left}, nil
	}
	if err := c.of.breaks[n]; err != nil {
		return run.ScheduleResult{}, err
	}
	s := sim.New(sim.SetupOf(scenario.SubjectBuiltin))
	defer s.Close()
	seed := *p.Spec.Seed
	load := sim.CaseOf(p.Schedule, p.Spec.QPS)
	result, err := s.Run(&load, tape.Seeded(seed), sim.Options{Run: history.Run{
		Schema: history.SchemaVersion, Scenario: "campaign", Backend: "sim", Subject: p.Spec.Subject, From: p.Spec.From, To: p.Spec.To, Seed: seed, QPS: p.Spec.QPS, Bounds: search.Bounds,
	}})
	if err != nil {
		return run.ScheduleResult{}, err
	}
	return run.ScheduleResult{Took: 2 * time.Second, Reset: time.Second}, dir.SaveHistory(result.History)
}

// options returns the options of a campaign of a few schedules.
func options(t *testing.T, seeds uint64) Options {
	t.Helper()
	return Options{
		Spec: run.Spec{Subject: scenario.SubjectBuiltin, Servers: 3, QPS: 20}, Versions: []string{"v1.37.1", "v1.36.3"}, First: 101, Seeds: seeds, Candidates: 4,
		Repeats: 3, ShrinkRuns: 3, Findings: findings.For(scenario.SubjectBuiltin), Out: t.TempDir(), Progress: t.Logf,
	}
}

func carriedOut(t *testing.T, o Options, on *simulated) *reports.Campaign {
	t.Helper()
	c, err := New(o, on.Open)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if on.lives != 0 {
		t.Errorf("%d clusters still exist", on.lives)
	}
	if err := reports.WriteCampaign(o.Out, found); err != nil {
		t.Fatal(err)
	}
	read, err := reports.ReadCampaign(filepath.Join(o.Out, reports.CampaignJSON))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// What findings explain is only counted: nothing is repeated and nothing is kept.
func TestKnownViolationsAreCounted(t *testing.T) {
	o := options(t, 4)
	on := &simulated{}
	c := carriedOut(t, o, on)
	if c.Schedules != 4 || !c.Complete || c.Method != reports.MethodReal || c.PassedOn == 0 || c.Real.PassedOn == 0 || len(c.Real.Coverage) < 10 {
		t.Errorf("%d schedules, complete %v, %s, passed on in %d; %d cells", c.Schedules, c.Complete, c.Method, c.PassedOn, len(c.Real.Coverage))
	}
	if len(c.Real.Sessions) != 1 || c.Real.Sessions[0].Schedules != 4 || c.Real.ScheduleSeconds != 2 || c.Real.ResetSeconds != 1 {
		t.Errorf("the clusters are %+v, %+v", c.Real.Sessions, c.Real)
	}
	for _, f := range c.Findings {
		if f.Finding == 0 {
			t.Errorf("NEW in the simulator, whose violations are known: %s: %s", f.ViolationKind, f.Sentence)
		}
	}
	if len(c.Findings) == 0 || on.schedules != 4 {
		t.Errorf("%d findings in %d runs: released versions have some, and nothing was to be repeated", len(c.Findings), on.schedules)
	}
	left, err := os.ReadDir(o.Out)
	if err != nil || len(left) != 2 {
		t.Errorf("left in the directory: %v, %v; want campaign.json and campaign.html", left, err)
	}
}

// What no finding explains is repeated, shrunk, tried in the simulator, and kept with its run.
func TestNewViolationsAreConfirmed(t *testing.T) {
	o := options(t, 3)
	o.Findings = findings.Catalogue{} // nothing is known
	on := &simulated{}
	c := carriedOut(t, o, on)
	if c.Verdict.Outcome != invariant.OutcomeFail || len(c.Findings) == 0 {
		t.Fatalf("the verdict is %+v with %d findings", c.Verdict, len(c.Findings))
	}
	confirmed := 0
	for i, f := range c.Findings {
		if f.Real == nil || i < mostConfirmed && f.Real.Repeated != 3 || len(f.Repro) == 0 {
			t.Fatalf("%s: %+v, with a repro of %d bytes", f.ViolationKind, f.Real, len(f.Repro))
		}
		if f.Real.Confirmed == 3 { // the simulator is deterministic
			confirmed++
		}
		if f.Real.Model != "the model knows it" && !slices.Contains(c.Real.Gaps, f.ViolationKind.String()) {
			t.Errorf("%s: %q is not a gap of the model", f.ViolationKind, f.Real.Model)
		}
		if _, err := os.Stat(filepath.Join(o.Out, f.Real.Run, "report.json")); err != nil {
			t.Errorf("its run is not kept: %v", err)
		}
		r, err := search.ReadRepro(filepath.Join(o.Out, f.File))
		if err != nil {
			t.Fatal(err)
		}
		p, err := replay.NewPlan(r, replay.Options{File: f.File, MaxServers: 63, Preset: sim.PresetOf})
		if err != nil || p.Subject != scenario.SubjectBuiltin || len(p.Steps) != len(r.Case.Steps) {
			t.Errorf("the plan of its file: %+v, %v", p, err)
		}
		if r.Found == nil || r.Found.Confirmed != f.Real.Confirmed {
			t.Errorf("its file says %+v of where it was found", r.Found)
		}
	}
	if confirmed == 0 {
		t.Error("no finding was confirmed in the simulator, which is deterministic")
	}
}

// One schedule shows several kinds of violations. It is repeated three times, and not three times
// for each kind.
func TestKindsOfOneScheduleShareItsRepetitions(t *testing.T) {
	o := options(t, 3)
	o.Findings, o.ShrinkRuns = findings.Catalogue{}, 0
	on := &simulated{}
	c := carriedOut(t, o, on)
	kinds := map[uint64]int{} // by seed
	for _, f := range c.Findings[:min(len(c.Findings), mostConfirmed)] {
		kinds[f.Seed]++
		if f.Real.Repeated != 3 {
			t.Errorf("%s was repeated %d times", f.ViolationKind, f.Real.Repeated)
		}
	}
	if want := 3 + 3*len(kinds); on.schedules != want {
		t.Errorf("%d runs for violations of the schedules %v, want %d", on.schedules, kinds, want)
	}
	if len(kinds) == 0 || kinds[c.Findings[0].Seed] < 2 {
		t.Errorf("no schedule shows two kinds, so this proves nothing: %v", kinds)
	}
}

// A violation that a new cluster does not show is reported with the schedules before it, and is not
// dropped.
func TestWhatIsNotRepeatedIsTold(t *testing.T) {
	f := reports.CampaignFinding{Real: &reports.RealFinding{Repeated: 3, After: []uint64{4, 7}}}
	if got := f.Confirmation(); !strings.Contains(got, "Not seen again in 3 runs") || !strings.Contains(got, "came after: the schedules of the seeds 4, 7") {
		t.Errorf("it says %q", got)
	}
}

// A cluster with a leftover is not used again. The schedule is carried out on the next one.
func TestAClusterWithALeftoverIsNotUsedAgain(t *testing.T) {
	on := &simulated{left: map[int][]string{3: {"/registry/left is in etcd, and was not"}}}
	c := carriedOut(t, options(t, 4), on)
	if c.Schedules != 4 || len(c.Real.Sessions) != 2 || c.Real.Sessions[0].Schedules != 2 || !strings.Contains(c.Real.Sessions[0].Ended, "/registry/left is in etcd") {
		t.Errorf("%d schedules on %+v", c.Schedules, c.Real.Sessions)
	}
	if len(c.Troubles) > 0 {
		t.Errorf("a leftover is a trouble: %+v", c.Troubles)
	}
}

// A schedule that even a new cluster cannot be used for does not end the campaign.
func TestAScheduleThatNoClusterCanBeUsedFor(t *testing.T) {
	on := &simulated{left: map[int][]string{3: {"left"}, 4: {"left"}}}
	c := carriedOut(t, options(t, 4), on)
	if c.Schedules != 4 || len(c.Real.Sessions) != 3 || len(c.Troubles) != 1 || !strings.Contains(c.Troubles[0].Sentence, "it was not used for the schedule of seed") {
		t.Errorf("%d schedules on %+v; troubles %+v", c.Schedules, c.Real.Sessions, c.Troubles)
	}
	if on.schedules != 6 {
		t.Errorf("%d attempts, want 6: two for the schedule that was dropped", on.schedules)
	}
}

func TestAClusterThatBreaksOff(t *testing.T) {
	o := options(t, 3)
	on := &simulated{breaks: map[int]error{2: errors.New("etcd ended")}}
	c := carriedOut(t, o, on)
	if c.Schedules != 3 || len(c.Real.Sessions) != 2 || len(c.Troubles) != 1 || !strings.Contains(c.Troubles[0].Sentence, "etcd ended") {
		t.Errorf("%d schedules on %+v, troubles %+v", c.Schedules, c.Real.Sessions, c.Troubles)
	}
	never := &simulated{left: map[int][]string{}}
	for n := range 10 {
		never.left[n+1] = []string{"left"}
	}
	o = options(t, 3)
	search, err := New(o, never.Open)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := search.Run(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d clusters in a row", mostFailures)) {
		t.Errorf("no cluster could be used, and it ended with %v", err)
	}
	search, err = New(options(t, 3), (&simulated{refuses: errors.New("no namespaces")}).Open)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := search.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no namespaces") {
		t.Errorf("no cluster could be started, and it ended with %v", err)
	}
}

// An interrupted campaign reports what it found until then, and is not complete.
func TestAnInterruptedCampaign(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	on := &simulated{then: func(n int) {
		if n == 2 {
			cancel()
		}
	}}
	c, err := New(options(t, 100), on.Open)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Run(ctx)
	if err != nil || found.Complete || found.Schedules != 2 || found.Real.Sessions[0].Ended != "the campaign was interrupted" {
		t.Errorf("%d schedules, complete: %t, clusters %+v, %v", found.Schedules, found.Complete, found.Real.Sessions, err)
	}
}

func TestWrongOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"one version":        func(o *Options) { o.Versions = []string{"v1.37.1", "v1.37.1"} },
		"no such version":    func(o *Options) { o.Versions = []string{"v1.36.3", "v1.99.0"} },
		"no server":          func(o *Options) { o.Spec.Servers = 0 },
		"an unknown subject": func(o *Options) { o.Spec.Subject = "mine" },
		"a negative rate":    func(o *Options) { o.Spec.QPS = -1 },
	} {
		o := options(t, 1)
		change(&o)
		if _, err := New(o, nil); err == nil {
			t.Errorf("%s, and it was taken", name)
		}
	}
}
