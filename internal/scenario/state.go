package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/fault"
)

// State is the state of a plan's cluster after the steps so far: which servers run, are paused or
// have ended, with which version and setup, and what is still active, such as faults. It does not
// know about crashes. The zero value has no servers; see [State.Reset].
type State struct {
	servers []serverState
	on      []Step // steps whose effect is still on, in order

	objects     []string // of [Objects] that exist, by name
	held        []string // of those that have finalizers, by name; their namespace may be going
	controllers bool     // they run
	tests       bool     // they run
}

// serverState is a server with its present, or last, version and setup.
type serverState struct {
	Server
	process process
	refused bool
}

// process is the state of a server's process.
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
	s.held = s.held[:0]
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

// Setup returns the setup of a server. It is nil if the server has none, or if there is no such
// server.
func (s *State) Setup(server string) *Setup {
	if of := s.server(server); of != nil {
		return of.Setup
	}
	return nil
}

// Refuse records that a server refused to start with its setup. The server counts as running, but
// has no process until it starts with another setup.
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

// Versions are the present versions of the servers that run and are not paused, by name.
func (s *State) Versions() map[string]string {
	all := map[string]string{}
	for i := range s.servers {
		if is := &s.servers[i]; is.process == running && !is.refused {
			all[is.Name] = is.Version
		}
	}
	return all
}

// Runs reports whether a server runs or is paused, according to the steps.
func (s *State) Runs(server string) bool {
	of := s.server(server)
	return of != nil && of.process != ended
}

// labels returns the labels of the faults that are on.
func (s *State) labels() (all []string) {
	for i := range s.on {
		if s.on[i].Action == Inject {
			all = append(all, s.on[i].Label)
		}
	}
	return all
}

// String lists the servers, one a line, and then everything else that is on, one a line.
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
		case Define, BreakDiscovery, WithdrawDiscovery, StartCrowd:
			fmt.Fprintf(&b, "on: %s\n", on)
		}
	}
	return b.String()
}

// On returns, in order, the steps whose effect is still on: faults, broken documents, definitions,
// and servers that are paused, have ended or have a setup. The caller must not change them.
func (s *State) On() []Step { return s.on }

// BlockedPaths returns the paths from and to a server that the present setups block.
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

// Apply applies a valid step ([Step.Validate]). If the step cannot be carried out now, Apply
// changes nothing and returns the reason as an error.
func (s *State) Apply(step Step) error {
	switch step.Action {
	case Soak, Outlast, Converge, Sweep:
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
	case StartCrowd, EndCrowd:
		return s.gather(step)
	case CreateObjects, CreateQuota, DeleteOwners, DeleteNamespace, ReleaseObjects, RewriteObjects, MigrateObjects, CollectObjects:
		return s.changeObjects(step)
	case StartControllers, StopControllers:
		return s.control(step)
	case StartTests, AwaitTests:
		return s.test(step)
	case CompactEtcd, DefragmentEtcd, DeleteLease, WithdrawDiscovery, GrantDiscovery:
		return s.administer(step)
	default:
		return s.act(step)
	}
}

// take removes the matching steps from the steps that are on, and reports whether there was one.
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
	for _, o := range s.on {
		switch {
		case o.Action != Inject:
		case o.Label == step.Label:
			return fmt.Errorf("inject %q: that label is on already", step.Label)
		case f.Excludes(*o.Fault):
			return fmt.Errorf("inject %s: %s is on that link, and a fault that ends connections must be the only one: heal %q first", f, o.Fault.Detail(), o.Label)
		}
	}
	s.on = append(s.on, step)
	return nil
}

// document breaks or restores a discovery document. If the document is already broken, the step
// changes how it fails.
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

// act changes the process of a server. A paused server can be killed, but cannot be stopped
// gracefully.
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
	s.take(func(o *Step) bool { // one entry is about the process, and another about its setup, which stays on during a pause
		return o.Server == step.Server && (o.Action.starts() && (starts || next == ended) || o.Action == Pause || o.Action == Kill ||
			o.Action == Stop)
	})
	if next != running || starts && step.Setup != nil {
		s.on = append(s.on, step)
	}
	return nil
}

// starts reports whether the action starts a process.
func (a Action) starts() bool { return a == Start || a == Restart || a == Replace }

// Undo returns the steps after which nothing is on. First it heals faults and restores documents,
// because servers may need this to start or answer. Then it restores servers, and then definitions.
// Within each kind, the last comes first. Versions, and the setups of servers at their first start,
// stay.
func (s *State) Undo() []Step {
	var links, documents, servers, definitions []Step
	for _, o := range slices.Backward(s.on) {
		switch o.Action {
		case Inject:
			links = append(links, Step{Action: Heal, Label: o.Label})
		case BreakDiscovery:
			documents = append(documents, Step{Action: RestoreDiscovery, Server: o.Server, Path: o.Path})
		case WithdrawDiscovery:
			documents = append(documents, Step{Action: GrantDiscovery})
		case StartCrowd:
			links = append(links, Step{Action: EndCrowd, Server: o.Server})
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

// knowsHost returns an error if a setup has the host name of a server that is not in the plan.
func (s *State) knowsHost(setup *Setup) error {
	if setup != nil && setup.HostnameOf != "" && s.server(setup.HostnameOf) == nil {
		return fmt.Errorf("setup: the host name of %q, which is not a server of the plan", setup.HostnameOf)
	}
	return nil
}
