package sim

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
)

// The test checks a WebSocket to a server that serves the resource, and one through a server that
// does not.
func TestAWebSocketStandsAndBreaks(t *testing.T) {
	later := func(steps ...scenario.Step) []scenario.Step {
		return append([]scenario.Step{soak(3500 * time.Millisecond)}, steps...)
	}
	for _, c := range []struct {
		name    string
		asked   string
		policy  proxy.Policy
		off     bool
		steps   []scenario.Step // the client sends its request at the start, for eight seconds; after the steps a minute passes
		status  int
		failure history.Failure
		events  int
	}{
		{name: "to a server of the resource", asked: "a", policy: proxy.Reference(), status: 101, events: 8},
		{name: "through another", asked: "b", policy: proxy.Reference(), status: 101, events: 8},
		{name: "through another, upstream", asked: "b", policy: proxy.Upstream137(), status: 401}, // without the user: finding 25
		{name: "through another, the feature off", asked: "b", off: true, status: 404},
		{name: "the peer cannot be reached", asked: "b", policy: proxy.Reference(), steps: []scenario.Step{cutting("b", "a")}, status: 503},
		{name: "the peer is cut off meanwhile", asked: "b", policy: proxy.Reference(), steps: later(cutting("b", "a")), status: 101, failure: history.FailureReset, events: 2},
		{name: "the peer dies meanwhile", asked: "b", policy: proxy.Reference(), steps: later(scenario.Step{Action: scenario.Kill, Server: "a"}), status: 101, failure: history.FailureReset, events: 2},
		{name: "the peer leaves meanwhile", asked: "b", policy: proxy.Reference(), steps: later(scenario.Step{Action: scenario.Stop, Server: "a"}), status: 101, events: 8}, // it drains,
		{name: "the asked server dies meanwhile", asked: "b", policy: proxy.Reference(), steps: later(scenario.Step{Action: scenario.Kill, Server: "b"}), status: 101, failure: history.FailureReset, events: 2},
		{name: "the answer is cut off after its head", asked: "b", policy: proxy.Reference(),
			steps:  []scenario.Step{{Action: scenario.Inject, Label: "f", Fault: &fault.Fault{Kind: fault.LimitData, Direction: fault.Down, From: "b", To: "a", Bytes: headerBytes + 5}}},
			status: 101, failure: history.FailureReset},
	} {
		t.Run(c.name, func(t *testing.T) {
			kase := three(append(c.steps, soak(time.Minute))...)
			kase.Settled = true
			at := 0
			if len(c.steps) == 1 { // the step comes before the request
				at = 1
			}
			kase.Requests = []Request{{Step: at, After: time.Second, Server: c.asked, Request: workload.Request{Verb: "watch", GVR: onlyNew, Upgrade: true, For: 8 * time.Second}}}
			setup := only(t, c.policy)
			if c.off {
				setup.Policy = func(string) (proxy.Policy, bool) { return proxy.Policy{}, false }
			}
			r := run(t, setup, kase, 1)
			o := r.History.Operations[0]
			if o.Status != c.status || o.Failure != c.failure || o.Events != c.events {
				t.Errorf("answered %d %q with %d events (%s), want %d %q with %d", o.Status, o.Failure, o.Events, o.Message, c.status, c.failure, c.events)
			}
			passedOn := 0
			for _, h := range r.History.Hops {
				if h.Rerouted {
					passedOn++
					if h.Altered != "" || h.Status != c.status {
						t.Errorf("passed on as %+v", h)
					}
				}
			}
			if want := c.asked == "b" && (c.status == 101 || c.status == 401); (passedOn == 1) != want {
				t.Errorf("passed on %d times, want once: %t", passedOn, want)
			}
		})
	}
}
