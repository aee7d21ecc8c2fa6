package sim

import (
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
)

// Only a serves a resource. The test checks how b answers requests for it at two times: 10 s after
// fetches of a's /apis begin to fail, and four minutes after they work again. The restart of
// another server makes all servers fetch. TestUpstreamTakesEmptyBodyForDocument in package proxy
// does the same with upstream's own code.
func TestWhatComesOfAFetchThatFails(t *testing.T) {
	down := func(bytes int64) *fault.Fault {
		return &fault.Fault{Kind: fault.LimitData, From: "b", To: "a", Direction: fault.Down, Bytes: bytes}
	}
	type answers struct{ during, after int }
	forgets, forgetsForGood, remembers := answers{404, 200}, answers{404, 404}, answers{200, 200}
	for name, c := range map[string]struct {
		manner              fault.DiscoveryFailure
		fault               *fault.Fault // instead of the failure
		upstream, reference answers
	}{
		"500":                          {manner: fault.ServerError, upstream: forgets, reference: remembers},
		"breaks off":                   {manner: fault.BreaksOff, upstream: forgetsForGood, reference: remembers},
		"cut short":                    {manner: fault.CutShort, upstream: forgets, reference: remembers},
		"a link lets the headers past": {fault: down(headerBytes), upstream: forgetsForGood, reference: answers{0, 200}},
		"and one byte of the document": {fault: down(headerBytes + 1), upstream: forgets, reference: answers{0, 200}},
	} {
		for _, policy := range []proxy.Policy{proxy.Upstream137(), proxy.Upstream135(), proxy.Reference()} {
			t.Run(name+", "+policy.Name, func(t *testing.T) {
				begin := scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: "/apis", Failure: c.manner}
				end := scenario.Step{Action: scenario.RestoreDiscovery, Server: "a", Path: "/apis"}
				if c.fault != nil {
					begin = scenario.Step{Action: scenario.Inject, Label: "f", Fault: c.fault}
					end = scenario.Step{Action: scenario.Heal, Label: "f"}
				}
				r := run(t, only(t, policy), three(soak(10*time.Second), begin, scenario.Step{Action: scenario.Restart, Server: "c"}, soak(15*time.Second), end,
					soak(5*time.Minute)).asking(3, "b", onlyNew, 10*time.Second, 1).asking(5, "b", onlyNew, 4*time.Minute, 1), 1)
				want := c.upstream
				if policy.Name == proxy.Reference().Name {
					want = c.reference
				}
				if o := r.History.Operations; o[0].Status != want.during || o[len(o)-1].Status != want.after { // the load repeats what was reset
					t.Errorf("answered %+v, want %+v", o, want)
				}
				if f := r.History.Faults[0]; !f.Effective() {
					t.Errorf("%+v: the fault affected no fetch", f)
				}
			})
		}
	}
}

// v1.34 crashes after a fetch that fails. It does not crash if the fetch breaks off before any part
// of the document has arrived.
func TestNothingComesOfNothing(t *testing.T) {
	for manner, dies := range map[fault.DiscoveryFailure]bool{fault.BreaksOff: false, fault.CutShort: true} {
		r := run(t, only(t, proxy.Upstream134()), three(soak(10*time.Second), scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: "/apis", Failure: manner},
			scenario.Step{Action: scenario.Restart, Server: "c"}, soak(10*time.Second)), 1)
		crashed := false
		for _, l := range r.History.Lifecycle {
			crashed = crashed || l.Server == "b" && l.State == "crashed"
		}
		if crashed != dies {
			t.Errorf("%s: b crashed: %t, want %t", manner, crashed, dies)
		}
	}
}
