package step_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/tape"
)

// One plan must leave the same records of steps and faults on every cluster. Only times and the
// effects of faults may differ.
func TestThePlanIsTheSameOnAnyCluster(t *testing.T) {
	const older, newer = "v1.36.3", "v1.37.1"
	soak := scenario.Step{Action: scenario.Soak, For: 5 * time.Second}
	document := scenario.Step{Action: scenario.BreakDiscovery, Server: "a", Path: "/apis", Failure: fault.CutShort}
	plan := scenario.Plan{
		Servers: []scenario.Server{{Name: "a", Version: newer}, {Name: "b", Version: older}, {Name: "c", Version: older, Setup: &scenario.Setup{Proxy: scenario.Off}}},
		Steps: []scenario.Step{
			soak, cut("ba", "b", "a"), cut("etcd", "c", fault.Etcd), at(scenario.Kill, "a"), {Action: scenario.Heal, Label: "ba"}, at(scenario.Start, "a"),
			{Action: scenario.Heal, Label: "etcd"}, at(scenario.Pause, "b"), soak, at(scenario.Resume, "b"), {Action: scenario.Replace, Server: "b", Version: newer},
			restart("c", nil), restart("a", &scenario.Setup{Serving: scenario.CertificateStranger}), document, soak, restart("b", &scenario.Setup{PeerCA: scenario.TrustStranger}),
			document, restart("a", nil), {Action: scenario.Define, Definition: widgets}, {Action: scenario.Undefine, Definition: widgets}, at(scenario.Stop, "c"),
			cut("left on", "a", "b"), at(scenario.Pause, "a"), {Action: scenario.Outlast, For: 30 * time.Second},
		},
	}
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	policy := proxy.Reference()
	simulator := sim.New(sim.Setup{Version: recorded.Get, Policy: func(string) (proxy.Policy, bool) { return policy, true }})
	defer simulator.Close()
	result, err := simulator.Run(&sim.Case{Servers: plan.Servers, Steps: plan.Steps}, &tape.Tape{}, sim.Options{StopAtError: true})
	if err != nil || result.History.End.Error != "" {
		t.Fatalf("%v, %s", err, result.History.End.Error)
	}
	c := &configurable{}
	if err := performWith(t, t.Context(), config(&c.fake, seen{c}), plan.Servers, plan.Steps...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stepsOf(c.steps), stepsOf(result.History.Steps)); diff != "" {
		t.Errorf("steps (-fake +simulator):\n%s", diff)
	}
	// The simulator heals links last, after the answer to the last request. Other clusters heal
	// them while the load goes on.
	if diff := cmp.Diff(faultsOf(c.faults, true), faultsOf(result.History.Faults, true)); diff != "" {
		t.Errorf("faults of links (-fake +simulator):\n%s", diff)
	}
	if diff := cmp.Diff(faultsOf(c.faults, false), faultsOf(result.History.Faults, false)); diff != "" {
		t.Errorf("other faults (-fake +simulator):\n%s", diff)
	}
}

func stepsOf(steps []history.Step) (all []string) {
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%d %s, disturbs: %t, %q", s.Index, s.Sentence, s.Disturbs, s.Error))
	}
	return all
}

func faultsOf(faults []history.Fault, links bool) (all []string) {
	for _, f := range faults {
		if (f.Kind == string(fault.Cut)) == links {
			all = append(all, fmt.Sprintf("%d %s %s→%s %s, %s, blocks: %t, %s", f.ID, f.Kind, f.From, f.To, f.Server, f.Detail, f.Blocks, f.Distrust))
		}
	}
	return all
}
