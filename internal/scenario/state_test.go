package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/fault"
)

var stateServers = []Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}}

func apply(t *testing.T, s *State, steps ...Step) {
	t.Helper()
	for _, step := range steps {
		if err := s.Apply(step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

func sentences(steps []Step) (all []string) {
	for _, s := range steps {
		all = append(all, s.String())
	}
	return all
}

// Faults are healed first, because a server that is cut off from etcd would never become ready.
func TestUndoIsInAnOrderThatWorks(t *testing.T) {
	etcd, slow := cut("b", fault.Etcd), fault.Fault{Kind: fault.Latency, From: "b", To: "a", Latency: time.Second}
	widgets := &Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1"}}
	s := NewState(stateServers)
	apply(t, s,
		Step{Action: Define, Definition: widgets},
		Step{Action: Inject, Label: "etcd", Fault: &etcd},
		Step{Action: Kill, Server: "b"},
		Step{Action: BreakDiscovery, Server: "a", Path: "/apis"},
		Step{Action: Restart, Server: "a", Setup: &Setup{Proxy: Off}},
		Step{Action: Pause, Server: "a"},
		Step{Action: Inject, Label: "slow", Fault: &slow},
		Step{Action: Soak, For: time.Second})
	want := []string{"heal: slow", "heal: etcd", "a serves /apis to its peers again", "resume a", "restart a", "start b", "delete the definition of widgets.example.com"}
	if diff := cmp.Diff(want, sentences(s.Undo())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	apply(t, s, s.Undo()...)
	if len(s.On()) != 0 || len(s.Undo()) != 0 || s.Setup("a") != nil {
		t.Errorf("%q are on after everything was undone", sentences(s.On()))
	}
}

// A user who changes a cluster by hand sees the state after the steps so far.
func TestTheStateReadsAsWhatIsOn(t *testing.T) {
	f := cut("b", "a")
	s := NewState([]Server{{Name: "a", Version: "v1.37.1"}, {Name: "b", Version: "v1.36.3"}, {Name: "c", Version: "v1.36.3"}, {Name: "d", Version: "v1.36.3"}})
	apply(t, s,
		Step{Action: Replace, Server: "a", Version: "v1.36.3"}, Step{Action: Pause, Server: "b"}, Step{Action: Kill, Server: "c"},
		Step{Action: Restart, Server: "d", Setup: &Setup{Proxy: Off}},
		Step{Action: Inject, Label: "cut b a", Fault: &f}, Step{Action: BreakDiscovery, Server: "a", Path: "/apis"})
	want := "a v1.36.3 runs\nb v1.36.3 is paused\nc v1.36.3 does not run\nd v1.36.3 runs, " + (&Setup{Proxy: Off}).String() + "\n" +
		"on: cut, b→a, labelled \"cut b a\"\non: a fails to serve /apis to its peers\n"
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for server, runs := range map[string]bool{"a": true, "b": true, "c": false, "z": false} {
		if s.Runs(server) != runs {
			t.Errorf("%s runs: %v, want %v", server, s.Runs(server), runs)
		}
	}
	s.Refuse("d")
	if !strings.Contains(s.String(), "d v1.36.3 refuses to start, ") {
		t.Errorf("a server that refused its setup is shown so:\n%s", s)
	}
}

// Each of these steps would fail on a cluster, or do nothing.
func TestTheStateRefuses(t *testing.T) {
	f := cut("b", "a")
	widgets := &Definition{Group: "example.com", Resource: "widgets", Versions: []string{"v1"}}
	for want, steps := range map[string][]Step{
		`use one of cut b a`:          {{Action: Inject, Label: "cut b a", Fault: &f}, {Action: Heal, Label: "everything"}},
		`heal "x": no such fault`:     {{Action: Heal, Label: "x"}},
		`that label is on already`:    {{Action: Inject, Label: "x", Fault: &f}, {Action: Inject, Label: "x", Fault: &f}},
		`/api of a does not fail`:     {{Action: BreakDiscovery, Server: "a", Path: "/apis"}, {Action: RestoreDiscovery, Server: "a", Path: "/api"}},
		`no step before has defined`:  {{Action: Define, Definition: widgets}, {Action: Undefine, Definition: widgets}, {Action: Undefine, Definition: widgets}},
		`start a: it has not ended`:   {{Action: Start, Server: "a"}},
		`no server "z" in the plan`:   {{Action: BreakDiscovery, Server: "z", Path: "/api"}},
		`the host name of "z"`:        {{Action: Restart, Server: "a", Setup: &Setup{HostnameOf: "z"}}},
		`resume a: it is not paused`:  {{Action: Pause, Server: "a"}, {Action: Kill, Server: "a"}, {Action: Resume, Server: "a"}},
		`from: no server "z"`:         {{Action: Inject, Fault: &fault.Fault{Kind: fault.Cut, From: "z", To: "a"}}},
		`replace a: no version given`: {{Action: Replace, Server: "a"}},
	} {
		s := NewState(stateServers)
		apply(t, s, steps[:len(steps)-1]...)
		before := slices.Clone(s.On())
		if err := s.Apply(steps[len(steps)-1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
		if diff := cmp.Diff(before, s.On()); diff != "" {
			t.Errorf("%s: a step that was refused changed the state:\n%s", want, diff)
		}
	}
}

// A real link cannot carry a fault that ends streams together with another one in the same stream.
func TestFaultsThatALinkCannotCarryTogether(t *testing.T) {
	bandwidth := fault.Fault{Kind: fault.Bandwidth, From: "client", To: "a", Rate: 100_000, Direction: fault.Up}
	latency := fault.Fault{Kind: fault.Latency, From: "client", To: "a", Latency: time.Second}
	timeout := fault.Fault{Kind: fault.Timeout, From: "client", To: "a"}
	down := timeout
	down.Direction = fault.Down
	elsewhere := timeout
	elsewhere.From = "b"
	cut := fault.Fault{Kind: fault.Cut, From: "client", To: "a"}
	inject := func(label string, f fault.Fault) Step {
		return Step{Action: Inject, Label: label, Fault: &f}
	}
	heal := func(label string) Step { return Step{Action: Heal, Label: label} }
	for name, c := range map[string]struct {
		steps []Step
		want  bool
	}{
		"two in one stream, of which one ends it":       {[]Step{inject("x", timeout), inject("y", bandwidth)}, false},
		"in the other order":                            {[]Step{inject("y", bandwidth), inject("x", timeout)}, false},
		"two that end it":                               {[]Step{inject("x", timeout), inject("y", down)}, false},
		"two that only delay":                           {[]Step{inject("x", latency), inject("y", bandwidth)}, true},
		"in different streams":                          {[]Step{inject("x", down), inject("y", bandwidth)}, true},
		"on different links":                            {[]Step{inject("x", elsewhere), inject("y", bandwidth)}, true},
		"one after the other":                           {[]Step{inject("x", timeout), heal("x"), inject("y", bandwidth)}, true},
		"the other one is healed":                       {[]Step{inject("x", timeout), inject("z", elsewhere), heal("z"), inject("y", bandwidth)}, false},
		"a cut, which takes the whole link down anyway": {[]Step{inject("x", timeout), inject("y", cut)}, true},
	} {
		s := NewState(stateServers)
		last := len(c.steps) - 1
		apply(t, s, c.steps[:last]...)
		if err := s.Apply(c.steps[last]); (err == nil) != c.want {
			t.Errorf("%s: error %v, want none: %t", name, err, c.want)
		}
	}
}

// A setup belongs to a process: it ends with the next start. Nothing about a process stays on after
// the process.
func TestASetupEndsWithTheNextStart(t *testing.T) {
	setup := &Setup{PeerCA: TrustStranger}
	s := NewState(stateServers)
	apply(t, s, Step{Action: Restart, Server: "b", Setup: setup})
	s.Refuse("b")
	if s.Setup("b") != setup || !s.Refused("b") || s.Refused("a") {
		t.Errorf("b has the setup %v, refused: %t", s.Setup("b"), s.Refused("b"))
	}
	apply(t, s, Step{Action: Kill, Server: "b"})
	if s.Setup("b") != setup || len(s.On()) != 1 {
		t.Errorf("the last process of b had the setup %v; on are %q", s.Setup("b"), sentences(s.On()))
	}
	apply(t, s, Step{Action: Start, Server: "b"})
	if s.Setup("b") != nil || s.Refused("b") || len(s.On()) != 0 {
		t.Errorf("b still has the setup %v; on are %q", s.Setup("b"), sentences(s.On()))
	}
}

func TestADefinitionOfTheSameResourceTakesThePlaceOfTheOther(t *testing.T) {
	one, two := &Definition{Group: "g.io", Resource: "r", Versions: []string{"v1"}}, &Definition{Group: "g.io", Resource: "r", Versions: []string{"v2"}}
	s := NewState(stateServers)
	apply(t, s, Step{Action: Define, Definition: one}, Step{Action: Define, Definition: two})
	if on := s.On(); len(on) != 1 || on[0].Definition != two {
		t.Errorf("on are %q", sentences(on))
	}
}

// FuzzUndo applies any steps that the state accepts. After them, Undo must return steps that can be
// carried out and after which nothing is on.
func FuzzUndo(f *testing.F) {
	f.Add([]byte{0, 3, 9, 12, 40, 7, 22, 5, 80, 33, 61, 17})
	f.Add([]byte{2, 2, 4, 30, 31, 60, 90, 91, 120, 121, 150, 200, 255})
	faults := []fault.Fault{cut("a", "b"), cut("b", "a"), cut("a", fault.Etcd), cut(fault.Client, "b")}
	definitions := []Definition{{Group: "g.io", Resource: "r", Versions: []string{"v1"}}, {Group: "g.io", Resource: "r", Versions: []string{"v2"}}, {Group: "g.io", Resource: "s", Versions: []string{"v1"}}}
	actions := []Action{Inject, Heal, Define, Undefine, BreakDiscovery, RestoreDiscovery, Start, Stop, Kill, Pause, Resume, Restart, Replace, Soak}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewState(stateServers)
		plan := Plan{Servers: stateServers}
		for _, b := range data {
			n := int(b) / len(actions)
			step := Step{Action: actions[int(b)%len(actions)]}
			switch step.Action {
			case Inject:
				step.Fault, step.Label = &faults[n%len(faults)], faults[n%len(faults)].String()
			case Heal:
				step.Label = faults[n%len(faults)].String()
			case Define, Undefine:
				step.Definition = &definitions[n%len(definitions)]
			case BreakDiscovery, RestoreDiscovery:
				step.Server, step.Path = stateServers[n%2].Name, []string{"/api", "/apis"}[n/2%2]
			case Soak:
				step.For = time.Second
			default:
				step.Server = stateServers[n%2].Name
				if step.Action == Replace {
					step.Version = "v1.37.1"
				}
				if step.Action.starts() && n%3 == 0 {
					step.Setup = &Setup{Proxy: Off}
				}
			}
			if s.Apply(step) == nil {
				plan.Add(step)
			}
		}
		undo := s.Undo()
		apply(t, s, undo...)
		if len(s.On()) != 0 || s.Undo() != nil && len(s.Undo()) != 0 {
			t.Errorf("after %q and %q there are still on: %q", sentences(plan.Steps), sentences(undo), sentences(s.On()))
		}
		for _, server := range s.servers {
			if server.process != running || server.Setup != nil {
				t.Errorf("after %q and %q: %+v", sentences(plan.Steps), sentences(undo), server)
			}
		}
		plan.Steps = append(plan.Steps, undo...)
		if err := plan.Validate(); err != nil {
			t.Errorf("%q: %v", sentences(plan.Steps), err)
		}
	})
}
