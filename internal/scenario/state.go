package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/fault"
)

// State is what the steps so far have made of a plan's cluster: which servers run, are paused or
// have ended, with which version and setup, and what is on. It does not know of crashes. The zero
// value has no servers; see [State.Reset].
type State struct {
	servers []serverState
	on      []Step // those that left something on, in order

	objects     []string // of [Objects] that exist, by name
	controllers bool     // they run
	tests       bool     // they run
}

// serverState is a server with its present, or last, version and setup.
type serverState struct {
	Server
	process process
	refused bool
}

// process is what the process of a server does.
type process int

const (
	running process = iota
	paused
	ended
)

// NewState returns the state before the first step: all servers run.
func NewState(servers []Server) *State {
	s := &State{}
	s.Reset(servers)
	return s
}

// Reset returns to the state before the first step of a plan. It keeps the allocated memory.
func (s *State) Reset(servers []Server) {
	s.servers, s.on, s.objects, s.controllers, s.tests = s.servers[:0], s.on[:0], s.objects[:0], false, false
	for _, server := range servers {
		s.servers = append(s.servers, serverState{Server: server})
	}
}

func (s *State) server(name string) *serverState {
	for i := range s.servers {
		if s.servers[i].Name == name {
			return &s.servers[i]
		}
	}
	return nil
}

// Setup is how a server is set up; nil: as the subject says, or there is no such server.
func (s *State) Setup(server string) *Setup {
	if of := s.server(server); of != nil {
		return of.Setup
	}
	return nil
}

// Refuse records that a server did not start with its setup. It counts as running, but has no
// process until it starts with another setup.
func (s *State) Refuse(server string) {
	if of := s.server(server); of != nil {
		of.refused = true
	}
}

// Refused reports whether a server has refused its present setup.
func (s *State) Refused(server string) bool {
	of := s.server(server)
	return of != nil && of.refused
}

// Runs reports whether a server runs, paused or not, as far as the steps say.
func (s *State) Runs(server string) bool {
	of := s.server(server)
	return of != nil && of.process != ended
}

// labels are those of the faults that are on.
func (s *State) labels() (all []string) {
	for i := range s.on {
		if s.on[i].Action == Inject {
			all = append(all, s.on[i].Label)
		}
	}
	return all
}

// String lists the servers, a line each, and then, a line each, what else is on.
func (s *State) String() string {
	var b strings.Builder
	for i := range s.servers {
		is := &s.servers[i]
		does := [...]string{running: "runs", paused: "is paused", ended: "does not run"}[is.process]
		if is.refused {
			does = "refuses to start"
		}
		if setup := is.Setup.String(); setup != "" {
			does += ", " + setup
		}
		fmt.Fprintf(&b, "%s %s %s\n", is.Name, is.Version, does)
	}
	for i := range s.on {
		switch on := &s.on[i]; on.Action {
		case Inject:
			fmt.Fprintf(&b, "on: %s, labelled %q\n", on, on.Label)
		case Define, BreakDiscovery:
			fmt.Fprintf(&b, "on: %s\n", on)
		}
	}
	return b.String()
}

// On are the steps, in order, that left something on: faults, broken documents, definitions, and
// servers that are paused, have ended or have a setup. The caller must not change them.
func (s *State) On() []Step { return s.on }

// BlockedPaths are the paths from and to a server that the present setups block.
func (s *State) BlockedPaths(about string) []BlockedPath {
	own := s.server(about)
	if own == nil {
		return nil
	}
	var all []BlockedPath
	add := func(from, to string, o Obstacle) {
		if o != NoObstacle {
			all = append(all, BlockedPath{from, to, o})
		}
	}
	add("", about, own.Setup.FromClients())
	for i := range s.servers {
		if other := &s.servers[i]; other != own {
			add(about, other.Name, own.Setup.ObstacleTo(other.Setup))
			add(other.Name, about, other.Setup.ObstacleTo(own.Setup))
		}
	}
	return all
}

// Apply applies a valid step ([Step.Validate]). It changes nothing if the step cannot be carried
// out now; the error says why.
func (s *State) Apply(step Step) error {
	switch step.Action {
	case Soak, Outlast, Sweep:
		return nil
	case Inject:
		return s.inject(step)
	case Heal:
		if !s.take(func(o *Step) bool { return o.Action == Inject && o.Label == step.Label }) {
			return fmt.Errorf("heal %q: no such fault is on%s", step.Label, fault.Suggest(step.Label, s.labels()))
		}
		return nil
	case Define, Undefine:
		was := s.take(func(o *Step) bool {
			return o.Action == Define && o.Definition.Group == step.Definition.Group && o.Definition.Resource == step.Definition.Resource
		})
		switch {
		case step.Action == Define:
			s.on = append(s.on, step)
		case !was:
			return fmt.Errorf("%s: no step before has defined it", step)
		}
		return nil
	case BreakDiscovery, RestoreDiscovery:
		return s.document(step)
	case CreateObjects, CreateQuota, DeleteOwners, DeleteNamespace, RewriteObjects, CollectObjects:
		return s.changeObjects(step)
	case StartControllers, StopControllers:
		return s.control(step)
	case StartTests, AwaitTests:
		return s.test(step)
	default:
		return s.act(step)
	}
}

// take removes what matches from what is on, and reports whether anything did.
func (s *State) take(match func(*Step) bool) bool {
	before := len(s.on)
	kept := s.on[:0]
	for i := range s.on {
		if !match(&s.on[i]) {
			kept = append(kept, s.on[i])
		}
	}
	s.on = kept
	return len(kept) < before
}

func (s *State) inject(step Step) error {
	f := step.Fault
	for _, end := range [...]struct{ what, name, also string }{{"from", f.From, fault.Client}, {"to", f.To, fault.Etcd}} {
		if end.name != end.also && s.server(end.name) == nil {
			return fmt.Errorf("inject %s: %s: no server %q in the plan, and it is not %q", f, end.what, end.name, end.also)
		}
	}
	for i := range s.on {
		if s.on[i].Action == Inject && s.on[i].Label == step.Label {
			return fmt.Errorf("inject %q: that label is on already", step.Label)
		}
	}
	s.on = append(s.on, step)
	return nil
}

// document breaks or restores a discovery document. Breaking it again changes how it fails.
func (s *State) document(step Step) error {
	if s.server(step.Server) == nil {
		return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
	}
	was := s.take(func(o *Step) bool {
		return o.Action == BreakDiscovery && o.Server == step.Server && o.Path == step.Path
	})
	switch {
	case step.Action == BreakDiscovery:
		s.on = append(s.on, step)
	case !was:
		return fmt.Errorf("%s: %s of %s does not fail", step.Action, step.Path, step.Server)
	}
	return nil
}

// act changes the process of a server. A paused server can be killed, but cannot be asked to end.
func (s *State) act(step Step) error {
	of := s.server(step.Server)
	if of == nil {
		return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
	}
	if err := s.knowsHost(step.Setup); err != nil {
		return fmt.Errorf("%s %s: %w", step.Action, step.Server, err)
	}
	next, refused := running, ""
	switch is := of.process; {
	case step.Action == Start && is != ended:
		refused = "it has not ended"
	case step.Action == Resume && is != paused:
		refused = "it is not paused"
	case step.Action == Start, step.Action == Resume:
	case is == ended:
		refused = "it does not run: start it first"
	case is == paused && step.Action == Pause:
		refused = "it is paused already"
	case is == paused && step.Action != Kill:
		refused = "it is paused: resume it first"
	case step.Action == Replace && step.Version == "":
		refused = "no version given"
	case step.Action == Stop, step.Action == Kill:
		next = ended
	case step.Action == Pause:
		next = paused
	}
	if refused != "" {
		return fmt.Errorf("%s %s: %s", step.Action, step.Server, refused)
	}
	of.process = next
	starts := step.Action.starts()
	if starts {
		of.Setup, of.refused = step.Setup, false
		if step.Version != "" {
			of.Version = step.Version
		}
	}
	s.take(func(o *Step) bool { // one entry is about the process, and another one about its setup, which a pause leaves alone
		return o.Server == step.Server && (o.Action.starts() && (starts || next == ended) || o.Action == Pause || o.Action == Kill || o.Action == Stop)
	})
	if next != running || starts && step.Setup != nil {
		s.on = append(s.on, step)
	}
	return nil
}

// starts reports whether the action starts a process.
func (a Action) starts() bool { return a == Start || a == Restart || a == Replace }

// Undo are the steps after which nothing is on: faults and broken documents first, since servers
// may need that to start or answer, then servers, then definitions; the last of each kind first.
// Versions, and the setups of servers as first started, stay.
func (s *State) Undo() []Step {
	var links, documents, servers, definitions []Step
	for _, o := range slices.Backward(s.on) {
		switch o.Action {
		case Inject:
			links = append(links, Step{Action: Heal, Label: o.Label})
		case BreakDiscovery:
			documents = append(documents, Step{Action: RestoreDiscovery, Server: o.Server, Path: o.Path})
		case Pause:
			servers = append(servers, Step{Action: Resume, Server: o.Server})
		case Kill, Stop:
			servers = append(servers, Step{Action: Start, Server: o.Server})
		case Define:
			definitions = append(definitions, Step{Action: Undefine, Definition: o.Definition})
		default:
			servers = append(servers, Step{Action: Restart, Server: o.Server})
		}
	}
	return slices.Concat(links, documents, servers, definitions)
}

// knowsHost refuses a setup with the host name of a server that the plan does not have.
func (s *State) knowsHost(setup *Setup) error {
	if setup != nil && setup.HostnameOf != "" && s.server(setup.HostnameOf) == nil {
		return fmt.Errorf("setup: the host name of %q, which is no server of the plan", setup.HostnameOf)
	}
	return nil
}
