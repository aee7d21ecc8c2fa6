package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/cluster"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

var widgets = &scenario.Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1"}}

func TestEveryActionReachesTheCluster(t *testing.T) {
	f := &fake{}
	err := perform(t, f,
		at(scenario.Stop, "a"), scenario.Step{Action: scenario.Start, Server: "a", Version: "v1"},
		at(scenario.Kill, "b"), at(scenario.Start, "b"), at(scenario.Pause, "a"), at(scenario.Resume, "a"), at(scenario.Restart, "a"),
		scenario.Step{Action: scenario.Replace, Server: "b", Version: "v2"}, cut("x", "b", "a"), scenario.Step{Action: scenario.Heal, Label: "x"},
		scenario.Step{Action: scenario.Define, Definition: widgets}, scenario.Step{Action: scenario.Undefine, Definition: widgets},
		scenario.Step{Action: scenario.Soak, For: time.Second}, scenario.Step{Action: scenario.Outlast, For: time.Second}, scenario.Step{Action: scenario.Sweep})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"stop a", "observe a", "start av1", "observe a", "kill b", "observe b", "start b", "observe b", "pause a", "resume a", "observe a",
		"replace a", "observe a", "replace bv2", "observe b", "inject cut, b→a", "heal cut, b→a",
		"define widgets", "observe a", "observe b", "undefine widgets", "observe a", "observe b", "sweep",
	}
	if diff := cmp.Diff(want, f.acts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, s := range f.steps {
		if s.Index != i || s.Disturbs != (i < 12) || s.Error != "" || s.End < s.Start {
			t.Errorf("recorded %+v", s)
		}
	}
	var kinds []string
	for i, o := range f.faults {
		kinds = append(kinds, fmt.Sprintf("%d %s %s%s", o.ID, o.Kind, o.Server, o.To))
		if begin, end := f.steps[[]int{2, 4, 8}[i]], f.steps[[]int{3, 5, 9}[i]]; o.Start < begin.Start || o.Start > begin.End || o.End < end.Start || o.End > end.End {
			t.Errorf("%s lasted from %s to %s, want from within %+v to within %+v", o.Kind, o.Start, o.End, begin, end)
		}
	}
	if want := []string{"1 kill b", "2 pause a", "3 cut a"}; !slices.Equal(kinds, want) {
		t.Errorf("faults recorded: %q, want %q", kinds, want)
	}
}

// After its last disturbance, a run must last as long as the cluster may take to recover, however
// long the plan was idle before.
func TestOutlastCountsFromTheLastDisturbance(t *testing.T) {
	f := &fake{}
	soak := scenario.Step{Action: scenario.Soak, For: time.Minute}
	if err := perform(t, f, soak, at(scenario.Stop, "a"), soak, scenario.Step{Action: scenario.Outlast, For: 90 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if lasted := f.steps[3].End - f.steps[1].End; lasted != 90*time.Second {
		t.Errorf("the run continued for %s after its last disturbance, want 1m30s", lasted)
	}
	first := &fake{now: time.Hour}
	if err := perform(t, first, scenario.Step{Action: scenario.Outlast, For: time.Minute}); err != nil || first.now != time.Hour+time.Minute {
		t.Errorf("without a disturbance it lasted until %s (%v), want a minute from the beginning of the steps", first.now, err)
	}
}

func TestWhatThePlanLeavesOnIsEndedAndRecorded(t *testing.T) {
	c := &configurable{}
	err := performWith(t, t.Context(), config(&c.fake, seen{c}), twoServers,
		cut("x", "b", "a"), cut("y", "a", "b"), at(scenario.Kill, "b"), at(scenario.Pause, "a"),
		scenario.Step{Action: scenario.BreakDiscovery, Server: "b", Path: "/api"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.done()[5:], []string{"heal cut, b→a", "heal cut, a→b", "restore b/api"}; !slices.Equal(got, want) {
		t.Errorf("in the end it was asked for %q, want %q: servers stay as they are", got, want)
	}
	var ids []int
	for _, o := range c.faults {
		ids = append(ids, o.ID)
	}
	if want := []int{1, 2, 3, 4, 5}; !slices.Equal(ids, want) {
		t.Errorf("the faults %v were recorded, want %v", ids, want)
	}
}

func TestTheFirstFailureEndsThePlan(t *testing.T) {
	f := &fake{failing: "kill a"}
	err := perform(t, f, at(scenario.Kill, "a"), at(scenario.Kill, "b"))
	if err == nil || !strings.Contains(err.Error(), "step 1, kill a: the disk is on fire") {
		t.Errorf("got error %v, want one that names the step", err)
	}
	if len(f.acts) != 1 || len(f.steps) != 1 || f.steps[0].Error != "the disk is on fire" || len(f.faults) != 1 {
		t.Errorf("acts %q, steps %+v, faults %+v", f.acts, f.steps, f.faults)
	}
}

func TestAScheduleGoesOnAfterAFailure(t *testing.T) {
	f := &fake{failing: "kill a"}
	c := config(f, f)
	c.GoOn = true
	if err := performWith(t, t.Context(), c, twoServers, at(scenario.Kill, "a"), at(scenario.Kill, "b")); err != nil {
		t.Fatal(err)
	}
	if len(f.steps) != 2 || f.steps[0].Error == "" || f.steps[1].Error != "" {
		t.Errorf("steps %+v", f.steps)
	}
}

func TestAServerThatIsAsTheStepWantsItIsNoFailureWhereThatIsTolerated(t *testing.T) {
	for _, c := range []struct {
		before, step scenario.Step
		failing      string
		err          error
		want         []string
	}{
		{at(scenario.Stop, "a"), at(scenario.Start, "a"), "start a", cluster.ErrRunning, []string{"stop a", "start a"}},
		{at(scenario.Restart, "b"), at(scenario.Stop, "a"), "stop a", cluster.ErrNotRunning, []string{"replace b", "stop a"}},
		{at(scenario.Restart, "b"), at(scenario.Kill, "a"), "kill a", cluster.ErrNotRunning, []string{"replace b", "kill a"}},
		{at(scenario.Restart, "b"), at(scenario.Pause, "a"), "pause a", cluster.ErrNotRunning, []string{"replace b", "pause a"}},
		{at(scenario.Restart, "b"), at(scenario.Restart, "a"), "replace a", cluster.ErrNotRunning, []string{"replace b", "replace a", "start a"}},
		{at(scenario.Pause, "a"), at(scenario.Resume, "a"), "resume a", cluster.ErrNotRunning, []string{"pause a", "resume a"}},
	} {
		for _, tolerant := range []bool{true, false} {
			f := &fake{failing: c.failing, err: fmt.Errorf("server a: %w", c.err)}
			config := config(f, f)
			config.Tolerant = tolerant
			err := performWith(t, t.Context(), config, twoServers, c.before, c.step, cut("x", "b", "a"))
			if (err == nil) != tolerant {
				t.Errorf("%s, tolerant: %t: %v", c.step, tolerant, err)
			}
			if !tolerant {
				continue
			}
			if got := f.done()[:len(c.want)]; !slices.Equal(got, c.want) {
				t.Errorf("%s: the cluster was asked for %q, want %q", c.step, got, c.want)
			}
			if n := len(f.faults); f.faults[n-1].ID != n { // a fault that did not happen is not recorded and has no ID
				t.Errorf("%s: faults %+v", c.step, f.faults)
			}
		}
	}
}

func TestWhatCannotBeCarriedOutIsNotAskedFor(t *testing.T) {
	for want, s := range map[string]scenario.Step{
		`no such fault is on`:       {Action: scenario.Heal, Label: "x"},
		"/api of a does not fail":   {Action: scenario.RestoreDiscovery, Server: "a", Path: "/api"},
		"start a: it has not ended": {Action: scenario.Start, Server: "a"},
	} {
		c := &configurable{}
		if err := performWith(t, t.Context(), config(&c.fake, seen{c}), twoServers, s); err == nil || !strings.Contains(err.Error(), want) || len(c.acts) != 0 {
			t.Errorf("%s: got %v, want an error about %q; asked for %q", s, err, want, c.acts)
		}
	}
}

func TestABackendThatCannotIsNotAskedTo(t *testing.T) {
	setup := &scenario.Setup{Proxy: scenario.Off}
	for _, c := range []struct {
		want    string
		servers []scenario.Server
		step    scenario.Step
	}{
		{"cannot start servers with a setup", twoServers, scenario.Step{Action: scenario.Restart, Server: "b", Setup: setup}},
		{"cannot start servers with a setup", []scenario.Server{{Name: "a", Setup: setup}}, scenario.Step{Action: scenario.Sweep}},
		{"cannot let a discovery document fail", twoServers, scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: "/api"}},
	} {
		f := &fake{}
		if err := performWith(t, t.Context(), config(f, f), c.servers, c.step); err == nil || !strings.Contains(err.Error(), c.want) || len(f.acts) != 0 {
			t.Errorf("%s: got %v, and it was asked for %q", c.step, err, f.acts)
		}
	}
}

func TestTheEndOfARunHasACause(t *testing.T) {
	cause := errors.New("the load has stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	f := &fake{failing: "stop a", err: context.Canceled}
	for _, s := range []scenario.Step{{Action: scenario.Soak, For: time.Hour}, at(scenario.Stop, "a")} {
		if err := performWith(t, ctx, config(f, f), twoServers, s); !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want %v", s, err, cause)
		}
	}
	full := &fake{full: errors.New("no space left")}
	if err := perform(t, full, at(scenario.Stop, "a"), at(scenario.Start, "a")); !errors.Is(err, full.full) || len(full.steps) != 1 {
		t.Errorf("got %v after %d steps, want the end after the first", err, len(full.steps))
	}
}

func TestABrokenDocumentIsRestoredAndRecorded(t *testing.T) {
	c := &configurable{}
	document := func(action scenario.Action, path string, how fault.DiscoveryFailure) scenario.Step {
		return scenario.Step{Action: action, Server: "a", Path: path, Failure: how}
	}
	err := performWith(t, t.Context(), config(&c.fake, seen{c}), twoServers,
		document(scenario.BreakDiscovery, "/api", fault.ServerError), document(scenario.RestoreDiscovery, "/api", fault.ServerError),
		document(scenario.BreakDiscovery, "/apis", fault.BreaksOff), document(scenario.BreakDiscovery, "/apis", fault.CutShort))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"break a/api ", "restore a/api", "break a/apis breaks-off", "restore a/apis", "break a/apis cut-short", "restore a/apis"}
	if !slices.Equal(c.acts, want) {
		t.Errorf("the cluster was asked for %q, want %q", c.acts, want)
	}
	details := []string{"GET /api fails for peers", "GET /apis breaks off for peers", "GET /apis is cut short for peers"}
	if len(c.faults) != len(details) {
		t.Fatalf("%d faults recorded, want %d", len(c.faults), len(details))
	}
	for i, f := range c.faults {
		if f.Kind != "break-discovery" || f.To != "a" || f.From != "" || f.Blocks || f.Evidence.Affected != 3 || f.ID != i+1 || f.Detail != details[i] {
			t.Errorf("recorded %+v", f)
		}
	}
}

// A request to a server before it was paused does not count as evidence for the fault.
func TestAFaultOfAServerCountsTheRequestsMeanwhile(t *testing.T) {
	f := &fake{asked: map[string]int{"a": 7}}
	c := config(f, f)
	c.Begin = func(i int, _ *scenario.Step) { f.asked["a"] += 10 * i }
	if err := performWith(t, t.Context(), c, twoServers, at(scenario.Pause, "a"), at(scenario.Resume, "a")); err != nil {
		t.Fatal(err)
	}
	if len(f.faults) != 1 || f.faults[0].Evidence.Requests != 10 {
		t.Errorf("faults %+v, want one that affected ten requests", f.faults)
	}
}

// The simulator carries out thousands of steps. Apart from the sentence in its record, a step must
// cost almost nothing.
func TestAStepAllocatesLittle(t *testing.T) {
	f := &fake{}
	var e step.Executor
	steps := slices.Repeat([]scenario.Step{{Action: scenario.Soak, For: time.Second}}, 100)
	f.steps = make([]history.Step, 0, 1000)
	once := func() {
		f.steps = f.steps[:0]
		if err := e.Prepare(config(f, f), twoServers, steps); err != nil {
			t.Fatal(err)
		}
		if err := e.Run(t.Context(), steps); err != nil {
			t.Fatal(err)
		}
		e.Heal()
		e.Finish()
	}
	sentences := testing.AllocsPerRun(10, func() {
		for i := range steps {
			_ = steps[i].String()
		}
	})
	if got := testing.AllocsPerRun(10, once); got > sentences+10 {
		t.Errorf("%d steps allocate %v times, their sentences %v times", len(steps), got, sentences)
	}
}
