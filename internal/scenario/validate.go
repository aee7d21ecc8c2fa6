package scenario

import (
	"errors"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/fault"
)

// Validate checks that a plan can be carried out. A plan that fails halfway costs minutes and
// proves nothing.
func (plan *Plan) Validate() error {
	if len(plan.Servers) == 0 {
		return errors.New("the plan has no server")
	}
	state := NewState(plan.Servers)
	for i, s := range plan.Servers {
		if slices.ContainsFunc(plan.Servers[:i], func(o Server) bool { return o.Name == s.Name }) {
			return fmt.Errorf("server %q is listed twice", s.Name)
		}
		if err := s.Setup.validate(); err != nil {
			return fmt.Errorf("server %q: %w", s.Name, err)
		}
		if err := state.knowsHost(s.Setup); err != nil {
			return fmt.Errorf("server %q: %w", s.Name, err)
		}
	}
	for _, s := range plan.SetUps() {
		if err := Emulable(s.Version, s.Setup.EmulatedVersion); err != nil {
			return fmt.Errorf("server %q: setup: %w", s.Name, err)
		}
	}
	if plan.Nodes < 0 || plan.Nodes > 100 {
		return fmt.Errorf("nodes %d: a share in percent is from 0 to 100", plan.Nodes)
	}
	if !slices.Contains(Traffics, plan.Traffic) {
		return fmt.Errorf("traffic %q: want one of %q", plan.Traffic, Traffics)
	}
	for i, s := range plan.Steps {
		err := s.Validate()
		if err == nil {
			err = state.Apply(s)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// Validate checks that the step has all fields that its action needs, and no others. [State.Apply]
// checks whether the step can be carried out after the steps before it.
func (s Step) Validate() error {
	switch {
	case s.Failure != fault.ServerError && s.Action != BreakDiscovery:
		return fmt.Errorf("%s: failure %q: only broken discovery has a way to fail", s.Action, s.Failure)
	case s.Optional && !s.AboutControllers():
		return fmt.Errorf("%s %s: only a step about controllers may be optional", s.Action, s.Server)
	case s.Setup != nil && !s.Action.starts():
		return fmt.Errorf("%s %s: a setup is for what starts a server", s.Action, s.Server)
	}
	switch s.Action {
	case Soak, Outlast, Converge, CollectObjects, AwaitTests:
		if s.For <= 0 {
			return fmt.Errorf("%s %s: want a positive time", s.Action, s.For)
		}
	case Inject:
		return s.validFault()
	case Define, Undefine:
		return s.Definition.validate()
	case BreakDiscovery, RestoreDiscovery:
		if !slices.Contains(fault.DiscoveryFailures, s.Failure) {
			return fmt.Errorf("%s %s: failure %q: want one of %q", s.Action, s.Path, s.Failure, fault.DiscoveryFailures)
		}
		if s.Path != "/api" && s.Path != "/apis" {
			return fmt.Errorf("%s %q: want /api or /apis", s.Action, s.Path)
		}
	case Start, Restart, Replace:
		if err := s.Setup.validate(); err != nil {
			return fmt.Errorf("%s %s: %w", s.Action, s.Server, err)
		}
	case CreateObjects, CreateQuota, DeleteOwners, DeleteNamespace, ReleaseObjects, RewriteObjects, MigrateObjects:
		return s.validObjects()
	case StartControllers:
		if s.Version == "" {
			return fmt.Errorf("%s: no version given", s.Action)
		}
	case StartTests:
		if s.Version == "" {
			return fmt.Errorf("%s: no version given", s.Action)
		}
		return s.Tests.validate()
	case Sweep, Heal, Stop, Kill, Pause, Resume, StopControllers, CompactEtcd, DefragmentEtcd, DeleteLease, WithdrawDiscovery, GrantDiscovery,
		StartCrowd, EndCrowd:
	default:
		return fmt.Errorf("unknown action %q", s.Action)
	}
	return nil
}

func (s Step) validFault() error {
	if s.Fault == nil {
		return errors.New("inject: no fault given")
	}
	if err := s.Fault.Validate(); err != nil {
		return err
	}
	if s.Fault.From == fault.Any || s.Fault.To == fault.Any {
		return fmt.Errorf("inject %s: a step is about one link: give each link that %q stands for a step of its own", s.Fault, fault.Any)
	}
	if s.Fault.From == fault.Client && s.Fault.To == fault.Etcd {
		return fmt.Errorf("inject %s: there is no such link: %q is dialled by servers only", s.Fault, fault.Etcd)
	}
	return nil
}

// OnlyReads returns nil if a plan can be carried out on servers that must not be changed or
// configured and may only get requests that read. Otherwise the error says why it cannot.
func (plan *Plan) OnlyReads() error {
	for i, s := range plan.Steps {
		if s.Disturbs() {
			return fmt.Errorf("step %d, %s, changes or harms the control plane", i+1, s)
		}
		if s.Action == StartCrowd {
			return fmt.Errorf("step %d, %s, needs a caller of its own, and is more than reading", i+1, s)
		}
	}
	for _, s := range plan.Servers {
		if s.Setup != nil {
			return fmt.Errorf("server %s has to be configured: %s", s.Name, s.Setup)
		}
	}
	switch plan.Traffic {
	case GeneralTraffic, WatchTraffic, SubresourceTraffic, DiscoveryTraffic:
		return nil
	default:
		return fmt.Errorf("its traffic, %s, is more than reading", plan.Traffic)
	}
}
