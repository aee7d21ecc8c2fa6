package engine

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fabric"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
)

// stage is a cluster of no processes: it notes what the executor asks of it. Real clusters are for internal/e2e.
type stage struct {
	Cluster // anything else would be a nil dereference, and fail the test
	fabric  *fabric.Fabric
	record  *history.Recorder
	acts    []string
	failing string

	loadEnded history.Time
}

func (s *stage) act(what string) error {
	s.acts = append(s.acts, what)
	if what == s.failing {
		return errors.New("the disk is on fire")
	}
	return nil
}

func (s *stage) Fabric() *fabric.Fabric                             { return s.fabric }
func (s *stage) StartServer(_ context.Context, n, v string) error   { return s.act("start " + n + v) }
func (s *stage) StopServer(_ context.Context, n string) error       { return s.act("stop " + n) }
func (s *stage) KillServer(_ context.Context, n string) error       { return s.act("kill " + n) }
func (s *stage) PauseServer(_ context.Context, n string) error      { return s.act("pause " + n) }
func (s *stage) ResumeServer(_ context.Context, n string) error     { return s.act("resume " + n) }
func (s *stage) ReplaceServer(_ context.Context, n, v string) error { return s.act("replace " + n + v) }
func (s *stage) Serving(string) int                                 { return 0 }

// perform carries out steps on a stage and returns what was recorded.
func perform(t *testing.T, ctx context.Context, s *stage, steps ...scenario.Step) (*history.History, error) {
	t.Helper()
	return performOn(t, ctx, s, s, steps...)
}

// performOn does it on a cluster that is more than the stage it stands on.
func performOn(t *testing.T, ctx context.Context, cluster Cluster, s *stage, steps ...scenario.Step) (*history.History, error) {
	t.Helper()
	return performPlan(t, ctx, cluster, s, scenario.Plan{Servers: []scenario.Server{{Name: "a"}, {Name: "b"}}, Steps: steps})
}

// performPlan does it with servers that a plan sets up.
func performPlan(t *testing.T, ctx context.Context, cluster Cluster, s *stage, plan scenario.Plan) (*history.History, error) {
	t.Helper()
	fabric, err := fabric.New(fabric.Config{
		Destinations: []fabric.Destination{
			{Name: "a", Advertised: netip.MustParseAddrPort("127.0.0.1:0"), Real: netip.MustParseAddrPort("127.0.0.1:1")},
			{Name: "b", Advertised: netip.MustParseAddrPort("127.0.0.1:0"), Real: netip.MustParseAddrPort("127.0.0.1:2")},
		},
		Sources: []fabric.Source{{Name: "a", Addr: netip.MustParseAddr("127.0.0.2")}, {Name: "b", Addr: netip.MustParseAddr("127.0.0.3")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fabric.Close() })
	s.fabric = fabric
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}, {Name: "b"}}}, nil)
	s.record = recorder
	e := executor{
		cluster: cluster, recorder: recorder, status: t.Logf, active: map[string]active{},
		load: &load{truth: &truth{serving: s.Serving, recorder: recorder, status: t.Logf, known: map[string]known{}}},
	}
	result := e.configureFirst(plan)
	if result == nil {
		result = e.whole(ctx, plan.Steps, func() { s.loadEnded = recorder.Now() })
	}
	for _, f := range e.healed {
		recorder.Fault(f)
	}
	if err := recorder.Close(result); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return h, result
}

func TestEveryActionReachesTheCluster(t *testing.T) {
	s := &stage{}
	h, err := perform(t, t.Context(), s,
		scenario.Step{Action: scenario.Stop, Server: "a"}, scenario.Step{Action: scenario.Start, Server: "a", Version: "v1"},
		scenario.Step{Action: scenario.Kill, Server: "b"}, scenario.Step{Action: scenario.Start, Server: "b"},
		scenario.Step{Action: scenario.Pause, Server: "a"}, scenario.Step{Action: scenario.Resume, Server: "a"},
		scenario.Step{Action: scenario.Restart, Server: "a"}, scenario.Step{Action: scenario.Replace, Server: "b", Version: "v2"},
		scenario.Step{Action: scenario.Soak, For: time.Millisecond}, scenario.Step{Action: scenario.Outlast, For: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"stop a", "start av1", "kill b", "start b", "pause a", "resume a", "replace a", "replace bv2"}
	if !slices.Equal(s.acts, want) {
		t.Errorf("the cluster was asked for %q, want %q", s.acts, want)
	}
	if len(h.Steps) != 10 || !h.Steps[7].Disturbs || h.Steps[8].Disturbs || h.Steps[9].Disturbs {
		t.Errorf("steps recorded: %+v", h.Steps)
	}
	var kinds []string
	for _, f := range h.Faults {
		kinds = append(kinds, f.Kind+" "+f.Server)
	}
	if !slices.Equal(kinds, []string{"kill b", "pause a"}) {
		t.Fatalf("faults of processes recorded: %q", kinds)
	}
	if killed, paused := h.Faults[0].End, h.Faults[1].End; killed > h.Steps[3].End || paused > h.Steps[5].End {
		t.Errorf("b was killed until %s, and a paused until %s; want each until it was started or resumed: %+v", killed, paused, h.Steps)
	}
}

// What a server had answered before it was killed or paused is no evidence that anybody noticed. What had to wait until a pause was over is.
func TestAFaultOfAProcessTouchesWhatIsAskedMeanwhile(t *testing.T) {
	var file bytes.Buffer
	now := history.Time(0)
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, func() history.Time { return now })
	e := executor{recorder: recorder}
	ask := func(from, to history.Time) {
		recorder.Operation(history.Operation{Server: "a", Start: from, End: to, Status: 200})
	}
	suffer := func(kind scenario.Action, from, to history.Time) {
		now = from
		e.beginProcessFault("a", kind)
		now = to
		e.endProcessFault("a", kind)
	}
	ask(1, 2)
	suffer(scenario.Pause, 3, 4)
	ask(5, 6)
	suffer(scenario.Pause, 10, 20)
	ask(11, 25) // it was answered when the server ran again
	suffer(scenario.Kill, 30, 40)
	ask(29, 30)
	ask(31, 32)
	var met []int
	for _, f := range e.healed {
		met = append(met, requests(f, recorder, nil))
	}
	if want := []int{0, 1, 2}; !slices.Equal(met, want) {
		t.Errorf("the faults met %v requests, want %v", met, want)
	}
}

// A run must last for as long after its last disturbance as things may take to come right, however long the plan was idle before.
func TestOutlastCountsFromTheLastDisturbance(t *testing.T) {
	const long = 30 * time.Millisecond
	h, err := perform(t, t.Context(), &stage{},
		scenario.Step{Action: scenario.Soak, For: long}, scenario.Step{Action: scenario.Stop, Server: "a"}, scenario.Step{Action: scenario.Outlast, For: long})
	if err != nil {
		t.Fatal(err)
	}
	if lasted := h.Steps[2].End - h.Steps[1].End; lasted < long {
		t.Errorf("the run went on for %s after its last disturbance, want %s", lasted, long)
	}
}

func TestAFaultThatThePlanLeavesOnIsHealedAndRecorded(t *testing.T) {
	h, err := perform(t, t.Context(), &stage{},
		scenario.Step{Action: scenario.Inject, Label: "x", Fault: &fault.Fault{Kind: fault.Cut, From: "b", To: "a"}},
		scenario.Step{Action: scenario.Pause, Server: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Faults) != 2 {
		t.Fatalf("%d faults recorded, want the cut and the pause", len(h.Faults))
	}
	for _, f := range h.Faults {
		if f.Effective() {
			t.Errorf("%s touched something, though nobody was there", f.Kind)
		}
	}
}

func TestTheFirstFailureEndsThePlan(t *testing.T) {
	s := &stage{failing: "kill a"}
	h, err := perform(t, t.Context(), s,
		scenario.Step{Action: scenario.Kill, Server: "a"}, scenario.Step{Action: scenario.Kill, Server: "b"})
	if err == nil || !strings.Contains(err.Error(), "step 1, kill a: the disk is on fire") {
		t.Errorf("got error %v, want one that names the step", err)
	}
	if len(s.acts) != 1 || len(h.Steps) != 1 || h.Steps[0].Error == "" || h.End.Error == "" {
		t.Errorf("acts %q, steps %+v, end %+v", s.acts, h.Steps, h.End)
	}
}

func TestRequestsThroughALink(t *testing.T) {
	hop := func(operation, server string, at int, rerouted bool) history.Hop {
		start := history.Time(at) * time.Second
		return history.Hop{Operation: operation, Server: server, Start: start, End: start + 100*time.Millisecond, Rerouted: rerouted}
	}
	hops := []history.Hop{
		hop("early", "b", 1, false), hop("early", "a", 1, true),
		hop("local", "b", 5, false),
		hop("passed on", "b", 6, false), hop("passed on", "a", 6, true),
		hop("from another", "c", 7, false), hop("from another", "a", 7, true),
	}
	for name, c := range map[string]struct {
		from, to string
		want     int
	}{
		"between servers": {"b", "a", 1}, "another pair": {"c", "a", 1}, "the other way": {"a", "b", 0},
		"from clients": {fault.Client, "b", 2}, "to etcd": {"b", fault.Etcd, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := history.Fault{From: c.from, To: c.to, Start: 4 * time.Second, End: 8 * time.Second}
			if got := requestsThrough(f, hops); got != c.want {
				t.Errorf("%d requests, want %d", got, c.want)
			}
		})
	}
}

func TestHealNeedsAFault(t *testing.T) {
	_, err := perform(t, t.Context(), &stage{}, scenario.Step{Action: scenario.Heal, Label: "x"})
	if err == nil || !strings.Contains(err.Error(), `no fault "x" is on`) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptionEndsASoakWithItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the load has stopped")
	cancel(cause)
	_, err := perform(t, ctx, &stage{}, scenario.Step{Action: scenario.Soak, For: time.Hour})
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// starting is a cluster that does not come up until its time is over.
type starting struct{ stage }

func (*starting) Start(ctx context.Context) error {
	<-ctx.Done()
	return errors.New("start kube-apiserver: connection refused")
}
func (*starting) RecordPanics()                         {}
func (*starting) Hops(time.Time) ([]history.Hop, error) { return nil, nil }

func TestTheHistoryTellsWhyARunWasEnded(t *testing.T) {
	ctx, abandon := context.WithCancelCause(t.Context())
	abandon(errors.New("etcd ended though nobody had asked it to"))
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, nil)
	err := Run(ctx, scenario.Plan{Servers: []scenario.Server{{Name: "a"}}}, &starting{}, recorder, Options{Status: t.Logf})
	if err == nil {
		t.Error("no error")
	}
	h, readErr := history.Read(&file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if !strings.HasPrefix(h.End.Error, "etcd ended though nobody had asked it to") || !strings.Contains(h.End.Error, "connection refused") {
		t.Errorf("it ended with %q", h.End.Error)
	}
}

// telling is a cluster whose servers have something to say when the run is over, if not all of it.
type telling struct {
	starting
	asked int
}

func (c *telling) RecordPanics() { c.asked++ }
func (c *telling) Hops(time.Time) ([]history.Hop, error) {
	return []history.Hop{{Operation: "1", Server: "a"}}, errors.New("read the audit log of a: line 7 is no JSON")
}

// A log that cannot be read may have told of a loop, and one that nobody looks through, of a panic: without them, nothing is shown to be well.
func TestTheHistoryTellsWhatServersDoNotTell(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var file bytes.Buffer
	recorder := history.NewRecorder(&file, history.Run{Servers: []history.Server{{Name: "a"}}}, nil)
	cluster := &telling{}
	if err := Run(ctx, scenario.Plan{Servers: []scenario.Server{{Name: "a"}}}, cluster, recorder, Options{Status: t.Logf}); err == nil {
		t.Error("no error")
	}
	h, err := history.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(h.End.Error, "line 7 is no JSON") || len(h.Hops) != 1 {
		t.Errorf("it ended with %q, and %d accounts; want it to say that some are missing, and the one that there is", h.End.Error, len(h.Hops))
	}
	if cluster.asked != 1 {
		t.Errorf("the logs were looked through for panics %d times, want once", cluster.asked)
	}
}
