package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

const (
	older = "v1.36.3"
	newer = "v1.37.1"
)

// only is a setup in which every server has the same policy and serves few resources.
func only(t testing.TB, policy proxy.Policy) Setup {
	t.Helper()
	gvrs, err := recorded.Skew(older, newer)
	if err != nil {
		t.Fatal(err)
	}
	return Setup{
		Policy:    func(string) (proxy.Policy, bool) { return policy, true },
		Reference: policy.Name == proxy.Reference().Name,
		Version: func(name string) (*recorded.Version, error) {
			v, err := recorded.Get(name)
			if err != nil {
				return nil, err
			}
			return v.Small(gvrs[:6]), nil
		},
	}
}

var onlyNew = history.GVR{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}

// three is a case of three servers, of which only the first is of the newer version.
func three(steps ...scenario.Step) *Case {
	return &Case{Servers: []scenario.Server{{Name: "a", Version: newer}, {Name: "b", Version: older}, {Name: "c", Version: older}}, Steps: steps}
}

func soak(d time.Duration) scenario.Step { return scenario.Step{Action: scenario.Soak, For: d} }

// asking adds the same request to a server, times times, at an interval after a step.
func (c *Case) asking(step int, server string, gvr history.GVR, every time.Duration, times int) *Case {
	for i := range times {
		c.Requests = append(c.Requests, Request{Step: step, After: time.Duration(i+1) * every, Server: server, Request: workload.Request{Verb: "list", GVR: gvr}})
	}
	return c
}

func run(t testing.TB, setup Setup, c *Case, seed uint64) *Result {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s := New(setup)
	defer s.Close()
	r, err := s.Run(c, tape.Seeded(seed), Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verdict(r *Result, name string) invariant.Verdict {
	for _, v := range invariant.Judge(r.History) {
		if v.Name == name {
			return v
		}
	}
	return invariant.Verdict{}
}

func TestARequestReachesThePeerThatServesIt(t *testing.T) {
	for _, policy := range []proxy.Policy{proxy.Reference(), proxy.Upstream137(), proxy.Upstream135(), proxy.Alpha128()} {
		t.Run(policy.Name, func(t *testing.T) {
			r := run(t, only(t, policy), three(soak(10*time.Second)).asking(1, "b", onlyNew, time.Second, 3), 1)
			if len(r.History.Operations) != 3 {
				t.Fatalf("%d operations", len(r.History.Operations))
			}
			for _, o := range r.History.Operations {
				if o.Status != 200 {
					t.Errorf("answered %d %q %q", o.Status, o.Failure, o.Message)
				}
			}
			if !r.Reached.Has(ReachedProxied) {
				t.Error("no request was passed on")
			}
			if t.Failed() {
				var b bytes.Buffer
				_ = r.WriteTrace(&b)
				t.Log("\n" + b.String())
			}
		})
	}
}

func cutting(from, to string) scenario.Step {
	return scenario.Step{Action: scenario.Inject, Label: from + to, Fault: &fault.Fault{Kind: fault.Cut, From: from, To: to}}
}

func TestUpstreamForgetsWhenAnotherServerRestarts(t *testing.T) {
	c := three(soak(10*time.Second), cutting("b", "a"), soak(5*time.Second), scenario.Step{Action: scenario.Restart, Server: "c"}, soak(20*time.Second)).
		asking(2, "b", onlyNew, time.Second, 4).asking(4, "b", onlyNew, 2*time.Second, 8)
	for policy, want := range map[string]invariant.Outcome{"upstream-1.37": invariant.OutcomeFail, "reference": invariant.OutcomePass} {
		p, err := proxy.PresetNamed(policy)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, only(t, p), c, 1)
		if v := verdict(r, "NoFalseNotFound"); v.Outcome != want {
			t.Errorf("%s: %s %s %+v", policy, v.Outcome, v.Reason, v.Evidence)
			var b bytes.Buffer
			_ = r.WriteTrace(&b)
			t.Log("\n" + b.String())
		}
	}
}

func TestTheSameThreeGiveTheSameTrace(t *testing.T) {
	c := three(soak(10*time.Second), cutting("b", "a"), soak(5*time.Second), scenario.Step{Action: scenario.Restart, Server: "c"}, soak(20*time.Second)).
		asking(2, "b", onlyNew, time.Second, 4).asking(4, "b", onlyNew, 2*time.Second, 8)
	for _, p := range proxy.Presets() {
		var first, second bytes.Buffer
		a, b := run(t, only(t, p), c, 5), run(t, only(t, p), c, 5)
		_ = a.WriteTrace(&first)
		_ = b.WriteTrace(&second)
		if a.Hash != b.Hash || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two runs of one seed differ", p.Name)
		}
	}
}

// A run that exceeds the time limit does not pass, whatever it has not finished. Its history has
// the faults on servers until then. A run that is long but within the limit does finish.
func TestARunThatTakesTooLongDidNotComeToItsEnd(t *testing.T) {
	const day = 24 * time.Hour
	kill := scenario.Step{Action: scenario.Kill, Server: "a"}
	for name, tc := range map[string]struct {
		c      *Case
		says   string
		faults int
	}{
		"a step":             {three(soak(day-time.Hour), kill, soak(2*time.Hour)), "step 3 of 3, let the load run for 2h0m0s, was not over", 1},
		"a request":          {three().asking(0, "b", onlyNew, 2*day, 1), "1 of the requests had not been sent", 0},
		"all that was to do": {three(soak(day-time.Hour), kill, soak(time.Minute)).asking(3, "b", onlyNew, time.Second, 1), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			tc.c.Settled = true
			r := run(t, only(t, proxy.Upstream137()), tc.c, 1)
			if e := r.History.End; !e.Complete || (e.Error == "") != (tc.says == "") || !strings.HasSuffix(e.Error, tc.says) {
				t.Errorf("the history ends with %+v, want %q", e, tc.says)
			}
			if len(r.History.Faults) != tc.faults {
				t.Errorf("faults on record: %+v, want %d", r.History.Faults, tc.faults)
			}
			for _, v := range invariant.Judge(r.History) {
				if v.Outcome == invariant.OutcomePass && tc.says != "" {
					t.Errorf("%s passes on a run that was not finished", v.Name)
				}
			}
		})
	}
}
