package step_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/step"
)

// hold carries out steps on two servers of a cluster, and leaves their faults active.
func hold(t *testing.T, c *configurable, steps ...scenario.Step) *step.Executor {
	t.Helper()
	with := config(&c.fake, seen{c})
	with.Status = t.Logf
	e := &step.Executor{}
	if err := e.Prepare(with, twoServers, steps); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context(), steps); err != nil {
		t.Fatal(err)
	}
	return e
}

// does carries out one more step, which line describes as people write it.
func does(t *testing.T, e *step.Executor, line string) ([]string, error) {
	t.Helper()
	s, err := scenario.ParseStep(strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	return e.Do(t.Context(), s)
}

func state(e *step.Executor) []string {
	return strings.Split(strings.TrimSuffix(e.State().String(), "\n"), "\n")
}

// The next step begins with the state that the plan left.
func TestAHeldClusterTakesFurtherSteps(t *testing.T) {
	e := hold(t, &configurable{}, cut("x", "b", "a"), at(scenario.Kill, "b"))
	for _, c := range []struct{ line, says, fails string }{
		{"restart b", "", "restart b: it does not run: start it first"},
		{"start b", "start b", ""},
		{"latency a b latency=2s", "latency 2s, a→b", ""},
		{"latency a b latency=2s", "", "that label is on already"},
		{"break-discovery a /apis", "a fails to serve /apis to its peers", ""},
		{"replace b v2", "replace b by v2", ""},
		{"pause a", "pause a", ""},
		{"heal y", "", "no such fault is on"},
	} {
		done, err := does(t, e, c.line)
		if c.fails == "" && (err != nil || !slices.Equal(done, []string{c.says})) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %q, error %v; want %q, or an error about %q", c.line, done, err, c.says, c.fails)
		}
	}
	want := []string{"a v1 is paused", "b v2 runs", `on: cut, b→a, labelled "x"`, `on: latency 2s, a→b, labelled "latency a b latency=2s"`,
		"on: a fails to serve /apis to its peers"}
	if diff := cmp.Diff(want, state(e)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	done, err := does(t, e, "heal")
	if want := []string{"heal: latency a b latency=2s", "heal: x", "a serves /apis to its peers again"}; err != nil || !slices.Equal(done, want) {
		t.Errorf("heal: %q, error %v; want %q", done, err, want)
	}
	if got := state(e); len(got) != 2 {
		t.Errorf("after everything was healed: %q", got)
	}
	if _, err := does(t, e, "heal"); err == nil || !strings.Contains(err.Error(), "no fault is on") {
		t.Errorf("there is nothing to heal, and it says %v", err)
	}
}

// A run that is judged first ends its faults. So they are not active for steps after it.
func TestFaultsThatTheEndOfTheRunHealedAreNotOn(t *testing.T) {
	e := hold(t, &configurable{}, cut("x", "b", "a"), scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: "/api"}, at(scenario.Stop, "b"))
	e.Heal()
	e.Finish()
	if want, got := []string{"a v1 runs", "b v1 does not run"}, state(e); !slices.Equal(got, want) {
		t.Errorf("%q are on, want %q: servers stay as they are", got, want)
	}
	if _, err := does(t, e, "cut b a"); err != nil {
		t.Error(err)
	}
}

// A server may crash between two steps, and a kubelet may start it again.
func TestAServerThatEndedByItselfCanBeStarted(t *testing.T) {
	c := &configurable{}
	e := hold(t, c)
	c.down = map[string]bool{"b": true}
	if got := state(e); got[1] != "b v1 does not run" {
		t.Errorf("after a crash: %q", got)
	}
	if _, err := does(t, e, "start b"); err != nil {
		t.Error(err)
	}
	c.down = map[string]bool{"b": true}
	if _, err := does(t, e, "restart b"); err == nil || !strings.Contains(err.Error(), "start it first") {
		t.Errorf("restart of a crashed server: %v", err)
	}
	c.down = nil
	if got := state(e); got[1] != "b v1 runs" {
		t.Errorf("after something else has started it: %q", got)
	}
}

// A failed step leaves no fault active, and does not prevent the next step.
func TestAHeldClusterOutlivesAFailure(t *testing.T) {
	for line, act := range map[string]string{
		"cut b a": "inject cut, b→a", "break-discovery a /api": "break a/api ",
	} {
		c := &configurable{fake: fake{failing: act}}
		e := hold(t, c)
		before := state(e)
		if done, err := does(t, e, line); err == nil || len(done) > 0 {
			t.Errorf("%s: %q was done, error %v", line, done, err)
		}
		if got := state(e); !slices.Equal(got, before) {
			t.Errorf("after %s failed: %q", line, got)
		}
		c.failing = ""
		if _, err := does(t, e, line); err != nil {
			t.Errorf("%s, once more: %v", line, err)
		}
	}
	c := &configurable{fake: fake{failing: "heal cut, b→a"}}
	e := hold(t, c, cut("x", "b", "a"), cut("y", "a", "b"))
	done, err := does(t, e, "heal")
	if err == nil || !slices.Equal(done, []string{"heal: y"}) || len(state(e)) != 2 {
		t.Errorf("a fault that another program has removed: %q, error %v, active are %q", done, err, state(e))
	}
}

func TestAStepThatMakesNoSenseIsRefusedBeforeItReachesTheCluster(t *testing.T) {
	c := &configurable{}
	e := hold(t, c)
	if _, err := e.Do(t.Context(), scenario.Step{Action: "dance"}); err == nil || !strings.Contains(err.Error(), `unknown action "dance"`) {
		t.Error(err)
	}
	if _, err := does(t, e, "kill z"); err == nil || !strings.Contains(err.Error(), `no server "z"`) {
		t.Error(err)
	}
	if len(c.acts) > 0 {
		t.Errorf("the cluster was asked to %q", c.acts)
	}
}
