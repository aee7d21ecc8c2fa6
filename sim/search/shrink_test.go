package search

import (
	"context"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/reports/findings"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/tape"
)

var onlyNew = history.GVR{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}

// burdened is the case of the false 404 after an unrelated restart, with many additional steps that
// do not matter.
func burdened() sim.Case {
	cut := func(label, from, to string) scenario.Step {
		return scenario.Step{Action: scenario.Inject, Label: label, Fault: &fault.Fault{Kind: fault.Cut, From: from, To: to}}
	}
	soak := func(d time.Duration) scenario.Step { return scenario.Step{Action: scenario.Soak, For: d} }
	c := sim.Case{
		Servers: []scenario.Server{{Name: "a", Version: newer}, {Name: "b", Version: older}, {Name: "c", Version: older}, {Name: "d", Version: older}},
		Steps: []scenario.Step{
			soak(7 * time.Second), {Action: scenario.Pause, Server: "d"}, cut("slow", "d", "c"), soak(1777 * time.Millisecond),
			{Action: scenario.Inject, Label: "it", Fault: &fault.Fault{Kind: fault.Reset, From: "b", To: "a", Direction: fault.Up}}, soak(13 * time.Second),
			{Action: scenario.Define, Definition: &plainDefinitions[0]}, {Action: scenario.Kill, Server: "c"}, soak(3 * time.Second), {Action: scenario.Start, Server: "c"},
			soak(11 * time.Second), {Action: scenario.Heal, Label: "it"}, {Action: scenario.Heal, Label: "slow"},
			{Action: scenario.Resume, Server: "d"}, soak(40 * time.Second),
		},
	}
	c.Requests = append(c.Requests, sim.Request{Step: 10, After: 5 * time.Second, Server: "b", Request: workload.Request{Verb: "list", GVR: onlyNew, User: "admin"}})
	for i := range 30 {
		server := c.Servers[i%4].Name
		c.Requests = append(c.Requests,
			sim.Request{Step: i / 2, After: time.Duration(i) * 100 * time.Millisecond, Server: server, Request: workload.Request{Verb: "list", GVR: onlyNew, User: "admin"}},
			sim.Request{Step: i / 2, Server: server, Request: workload.Request{Verb: "get", Name: "x", GVR: history.GVR{Version: "v1", Resource: "configmaps"}}})
	}
	return c
}

// wanted is the violation that a search looks for while it shrinks.
func wanted(v Violation) reports.CampaignFinding {
	return reports.CampaignFinding{ViolationKind: v.ViolationKind, Invariant: v.Signature.Invariant}
}

// tried runs a case and returns its violations.
func tried(t *testing.T, spec Spec, c sim.Case, seed uint64) ([]Violation, [tape.Streams][]uint32) {
	t.Helper()
	setup, err := spec.Setup()
	if err != nil {
		t.Fatal(err)
	}
	s := sim.New(setup)
	defer s.Close()
	drawn := tape.Seeded(seed)
	drawn.Record(true)
	result, err := s.Run(&c, drawn, sim.Options{Run: spec.history(seed)})
	if err != nil {
		t.Fatal(err)
	}
	return Violations(findings.For(spec.Policy), invariant.Judge(result.History)), drawn.Recorded()
}

func TestShrinkLeavesNothingThatIsNotNeeded(t *testing.T) {
	spec := specOf("upstream-1.37", 4)
	all, on := tried(t, spec, burdened(), 5)
	least := 99
	for _, v := range all {
		if v.Signature.Invariant != "NoFalseNotFound" {
			continue
		}
		r, err := Shrink(t.Context(), spec, burdened(), on, wanted(v), findings.For(spec.Policy), DefaultShrinkRuns)
		if err != nil {
			t.Fatal(err)
		}
		lines, disturbances := Story(&r.Case)
		least = min(least, disturbances)
		if disturbances > 3 || len(r.Case.Servers) > 3 || len(r.Case.Requests) != 1 || r.Tape != nil || !r.Case.Settled {
			t.Errorf("%s: %d disturbances, %d servers, %d requests, tape %v:\n%s", v.Signature, disturbances, len(r.Case.Servers), len(r.Case.Requests), r.Tape, lines)
		}
		for _, s := range r.Case.Steps {
			if s.For%time.Second != 0 {
				t.Errorf("a wait of %s is not round", s.For)
			}
			if s.Fault != nil && s.Fault.Kind != fault.Cut {
				t.Errorf("the fault is not the plainest: %s", s.Fault)
			}
		}
		if r.Spec.Servers != len(r.Case.Servers) {
			t.Errorf("the spec says %d servers, and there are %d", r.Spec.Servers, len(r.Case.Servers))
		}
	}
	if least != 2 { // the cut, and the restart
		t.Fatalf("the smallest false 404 takes %d disturbances, of %+v", least, all)
	}
}

// Without any runs, Shrink must return the case unchanged. With a signature that the case does not
// show, it must return nothing.
func TestShrinkKeepsToItsBounds(t *testing.T) {
	spec := specOf("upstream-1.37", 4)
	all, on := tried(t, spec, burdened(), 5)
	if len(all) == 0 {
		t.Fatal("nothing is violated")
	}
	r, err := Shrink(t.Context(), spec, burdened(), on, wanted(all[0]), findings.For(spec.Policy), 0)
	if err != nil {
		t.Fatal(err)
	}
	if c := burdened(); encoded(t, r.Case) != encoded(t, c) {
		t.Errorf("it was changed to\n%s", encoded(t, r.Case))
	}
	other := wanted(all[0])
	other.ViolationKind = reports.ViolationKind{Signature: invariant.Signature{Wrong: "it is Monday"}}
	if _, err := Shrink(t.Context(), spec, burdened(), on, other, findings.For(spec.Policy), 10); err == nil {
		t.Error("a violation that there is not was shrunk")
	}
	other.Invariant = "NoSuch"
	if _, err := Shrink(t.Context(), spec, burdened(), on, other, findings.For(spec.Policy), 10); err == nil {
		t.Error("an invariant that there is not was accepted")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Shrink(ended, spec, burdened(), on, wanted(all[0]), findings.For(spec.Policy), 10); err == nil {
		t.Errorf("it was run though it was to end: %v", r)
	}
}

func TestDroppingAStepDropsWhatHangsOnIt(t *testing.T) {
	c := candidate{Case: burdened()}
	c.drop(func(i int) bool {
		return c.Steps[i].Action == scenario.Inject || c.Steps[i].Action == scenario.Pause || c.Steps[i].Action == scenario.Kill
	})
	for _, s := range c.Steps {
		switch s.Action {
		case scenario.Soak, scenario.Define:
		default:
			t.Errorf("%s is left", s)
		}
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if len(c.Requests) != len(burdened().Requests) {
		t.Errorf("%d requests remain", len(c.Requests))
	}
}
