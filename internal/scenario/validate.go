package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/fault"
)

// Validate checks that a plan can be carried out: that it names only servers it has, asks of each only what it can do by
// then, and heals only what it injected. A plan that fails halfway costs minutes and proves nothing.
func (plan *Plan) Validate() error {
	r := rehearsal{servers: map[string]state{}, injected: map[string]bool{}}
	for _, s := range plan.Servers {
		if r.servers[s.Name] != unheardOf {
			return fmt.Errorf("server %q is listed twice", s.Name)
		}
		r.servers[s.Name] = running
	}
	if len(r.servers) == 0 {
		return errors.New("the plan has no server")
	}
	for _, s := range plan.Servers {
		if err := s.Setup.validate(r.servers); err != nil {
			return fmt.Errorf("server %q: %w", s.Name, err)
		}
	}
	for _, s := range plan.SetUps() {
		if err := emulable(s.Version, s.Setup.EmulatedVersion); err != nil {
			return fmt.Errorf("server %q: %w", s.Name, err)
		}
	}
	if !slices.Contains(Traffics, plan.Traffic) {
		return fmt.Errorf("traffic %q: want one of %q", plan.Traffic, Traffics)
	}
	for i, s := range plan.Steps {
		if err := r.step(s); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// state is what has become of a server by the step that is looked at.
type state int

const (
	unheardOf state = iota
	running
	paused
	ended
)

// rehearsal goes through a plan with nothing but the states that its steps lead to.
type rehearsal struct {
	servers  map[string]state
	injected map[string]bool // by label, while on
}

func (r rehearsal) step(s Step) error {
	if s.Failure != fault.ServerError && s.Action != BreakDiscovery {
		return fmt.Errorf("%s: failure %q: only broken discovery has a way to fail", s.Action, s.Failure)
	}
	switch s.Action {
	case Soak, Outlast:
		if s.For <= 0 {
			return fmt.Errorf("%s %s: want a positive time", s.Action, s.For)
		}
	case Sweep:
	case Inject:
		return r.inject(s)
	case Heal:
		if !r.injected[s.Label] {
			return fmt.Errorf("heal %q: no such fault is on", s.Label)
		}
		delete(r.injected, s.Label)
	case Define, Undefine:
		return s.Definition.validate()
	case BreakDiscovery, RestoreDiscovery:
		if !slices.Contains(fault.DiscoveryFailures, s.Failure) {
			return fmt.Errorf("%s %s: failure %q: want one of %q", s.Action, s.Path, s.Failure, fault.DiscoveryFailures)
		}
		if s.Path != "/api" && s.Path != "/apis" {
			return fmt.Errorf("%s %q: want /api or /apis", s.Action, s.Path)
		}
		if r.servers[s.Server] == unheardOf {
			return fmt.Errorf("%s: no server %q in the plan", s.Action, s.Server)
		}
	case Start, Stop, Kill, Pause, Resume, Restart, Replace:
		if s.Setup != nil && s.Action != Start && s.Action != Restart && s.Action != Replace {
			return fmt.Errorf("%s %s: a setup is for what starts a server", s.Action, s.Server)
		}
		if err := s.Setup.validate(r.servers); err != nil {
			return fmt.Errorf("%s %s: %w", s.Action, s.Server, err)
		}
		return r.act(s)
	default:
		return fmt.Errorf("unknown action %q", s.Action)
	}
	return nil
}

func (r rehearsal) inject(s Step) error {
	if s.Fault == nil {
		return errors.New("inject: no fault given")
	}
	if err := s.Fault.Validate(); err != nil {
		return err
	}
	for _, end := range []struct{ what, name, also string }{
		{"from", s.Fault.From, fault.Client},
		{"to", s.Fault.To, fault.Etcd},
	} {
		switch {
		case end.name == fault.Any:
			return fmt.Errorf("inject %s: a step is about one link: give each link that %q stands for a step of its own", s.Fault, fault.Any)
		case end.name != end.also && r.servers[end.name] == unheardOf:
			return fmt.Errorf("inject %s: %s: no server %q in the plan, and it is not %q", s.Fault, end.what, end.name, end.also)
		}
	}
	if s.Fault.From == fault.Client && s.Fault.To == fault.Etcd {
		return fmt.Errorf("inject %s: there is no such link: %q is dialled by servers only", s.Fault, fault.Etcd)
	}
	if r.injected[s.Label] {
		return fmt.Errorf("inject %q: that label is on already", s.Label)
	}
	r.injected[s.Label] = true
	return nil
}

// act does what concerns the process of one server. One that is paused can be killed, but not be asked to end.
func (r rehearsal) act(s Step) error {
	var refused string
	next := running
	switch is := r.servers[s.Server]; {
	case is == unheardOf:
		return fmt.Errorf("%s: no server %q in the plan", s.Action, s.Server)
	case s.Action == Start && is != ended:
		refused = "it has not ended"
	case s.Action == Resume && is != paused:
		refused = "it is not paused"
	case s.Action == Start, s.Action == Resume:
	case is == ended:
		refused = "a step before has ended it: start it first"
	case is == paused && s.Action == Pause:
		refused = "it is paused already"
	case is == paused && s.Action != Kill:
		refused = "it is paused: resume it first"
	case s.Action == Replace && s.Version == "":
		refused = "no version given"
	case s.Action == Stop, s.Action == Kill:
		next = ended
	case s.Action == Pause:
		next = paused
	}
	if refused != "" {
		return fmt.Errorf("%s %s: %s", s.Action, s.Server, refused)
	}
	r.servers[s.Server] = next
	return nil
}

func (d *Definition) validate() error {
	switch {
	case d == nil:
		return errors.New("define: no definition given")
	case !strings.Contains(d.Group, "."):
		return fmt.Errorf("define %s: the group %q of a custom resource needs a dot", d, d.Group)
	case d.Resource == "" || len(d.Versions) == 0:
		return fmt.Errorf("define %s: a resource and its versions are needed", d)
	}
	return nil
}
