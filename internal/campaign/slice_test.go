package campaign

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/internal/workload"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
	"github.com/skewproof/skewproof/sim/search"
	"github.com/skewproof/skewproof/sim/tape"
)

var onlyNewer = history.GVR{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}

// part is a schedule for the simulator: steps, each followed by a request to b for a resource that
// only a serves.
type part []scenario.Step

// servers are the servers of both parts.
var servers = []scenario.Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}, {Name: "c", Version: "v1.36.3"}}

func soak(d time.Duration) scenario.Step { return scenario.Step{Action: scenario.Soak, For: d} }

// falseNotFound breaks NoFalseNotFound on released versions: c restarts while b cannot reach a.
var falseNotFound = part{
	soak(15 * time.Second), {Action: scenario.Inject, Label: "ba", Fault: &fault.Fault{Kind: fault.Cut, From: "b", To: "a"}}, soak(10 * time.Second),
	{Action: scenario.Restart, Server: "c"}, soak(20 * time.Second), {Action: scenario.Heal, Label: "ba"}, soak(30 * time.Second),
}

// harmless breaks nothing.
var harmless = part{soak(15 * time.Second), {Action: scenario.Restart, Server: "b"}, soak(30 * time.Second)}

// restart restarts every server, as between two schedules.
var restart = part{
	{Action: scenario.Restart, Server: "a"}, {Action: scenario.Restart, Server: "b"}, {Action: scenario.Restart, Server: "c"},
}

// simulate runs parts one after the other, and returns the history with the times at which each
// began.
func simulate(t *testing.T, parts ...part) (h *history.History, began []history.Time) {
	t.Helper()
	var c sim.Case
	c.Servers = servers
	var first []int
	for _, p := range parts {
		first = append(first, len(c.Steps))
		c.Steps = append(c.Steps, p...)
		if p[0].Action != scenario.Soak {
			continue // nothing is asked between two schedules
		}
		for i := first[len(first)-1] + 1; i <= len(c.Steps); i++ {
			if c.Steps[i-1].Action == scenario.Soak {
				continue
			}
			for _, after := range []time.Duration{time.Second, 7 * time.Second, 9 * time.Second} {
				c.Requests = append(c.Requests, sim.Request{Step: i, After: after, Server: "b", Request: workload.Request{Verb: "list", GVR: onlyNewer}})
			}
		}
	}
	s := sim.New(sim.Setup{Version: recorded.Get, Policy: func(version string) (proxy.Policy, bool) {
		policy, err := sim.PresetOf(version)
		return policy, err == nil
	}})
	defer s.Close()
	result, err := s.Run(&c, &tape.Tape{}, sim.Options{Run: history.Run{Schema: history.SchemaVersion, Subject: scenario.SubjectBuiltin, Bounds: search.Bounds}})
	if err != nil {
		t.Fatal(err)
	}
	h = result.History
	for _, i := range first {
		began = append(began, h.Steps[i].Start)
	}
	return h, began
}

// judged returns the verdicts of the invariants on a history, without times.
func judged(h *history.History) (said []string) {
	for _, v := range invariant.Judge(h) {
		line := v.Name + ": " + string(v.Outcome)
		for _, e := range v.Evidence {
			line += "\n  " + e.Signature.String()
		}
		said = append(said, line)
	}
	return said
}

// A schedule that follows another one on the same cluster gets the same verdicts as alone.
func TestASliceIsJudgedAsIfItWereAlone(t *testing.T) {
	for name, c := range map[string]struct{ before, part part }{
		"a violation after nothing wrong":   {harmless, falseNotFound},
		"nothing wrong after a violation":   {falseNotFound, harmless},
		"a violation after the same":        {falseNotFound, falseNotFound},
		"nothing wrong after nothing wrong": {harmless, harmless},
	} {
		t.Run(name, func(t *testing.T) {
			alone, _ := simulate(t, c.part)
			session, began := simulate(t, c.before, restart, c.part)
			slice, err := history.Slice(session, history.Part{From: began[2], To: session.End.At})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(judged(alone), judged(slice)); diff != "" {
				t.Errorf("alone (-) and on a cluster that was used before (+):\n%s", diff)
			}
			first, err := history.Slice(session, history.Part{From: 0, To: began[1]})
			if err != nil {
				t.Fatal(err)
			}
			by, _ := simulate(t, c.before)
			by.Counted = nil // a session reads the metrics after each schedule, the simulator only at its end
			if diff := cmp.Diff(judged(by), judged(first)); diff != "" {
				t.Errorf("the first schedule, alone (-) and cut out (+):\n%s", diff)
			}
		})
	}
}

// The part of a whole history is judged as the history is.
func TestTheWholeIsASlice(t *testing.T) {
	whole, _ := simulate(t, falseNotFound, restart, harmless)
	slice, err := history.Slice(whole, history.Part{From: 0, To: whole.End.At})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(judged(whole), judged(slice)); diff != "" {
		t.Errorf("whole (-) and cut out (+):\n%s", diff)
	}
}
