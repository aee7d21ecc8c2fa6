package scenario

import (
	"fmt"
	"slices"
)

// These are the actions of an administrator on etcd, or through the API, while servers run. Each
// takes effect at once and ends by itself. The record of the step has the effect
// ([history.Step.Effect]).
const (
	// CompactEtcd removes all past revisions from etcd. Who watches from a past one must list again.
	CompactEtcd Action = "compact-etcd"
	// DefragmentEtcd makes etcd rewrite its file. Etcd answers no other request in the meantime.
	DefragmentEtcd Action = "defragment-etcd"
	// DeleteLease deletes the identity lease of Step.Server. The server writes it again with its next
	// renewal, within 10 s. Until then peers take the server for gone.
	DeleteLease Action = "delete-lease"
	// WithdrawDiscovery lets only the users of the load read discovery, and no longer every
	// authenticated user. Servers fetch the discovery of their peers as system:apiserver.
	// GrantDiscovery lets this user read discovery again, by name.
	WithdrawDiscovery Action = "withdraw-discovery"
	GrantDiscovery    Action = "grant-discovery"
)

var administration = []Action{CompactEtcd, DefragmentEtcd, DeleteLease, WithdrawDiscovery, GrantDiscovery}

// Administers reports whether the action is an administrator's.
func (a Action) Administers() bool { return slices.Contains(administration, a) }

// administer applies an administrator's step.
func (s *State) administer(step Step) error {
	switch step.Action {
	case DeleteLease:
		if s.server(step.Server) == nil {
			return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
		}
	case WithdrawDiscovery, GrantDiscovery:
		was := s.take(func(o *Step) bool { return o.Action == WithdrawDiscovery })
		if step.Action == WithdrawDiscovery {
			s.on = append(s.on, step)
		} else if !was {
			return fmt.Errorf("%s: no step before has withdrawn it", step.Action)
		}
	}
	return nil
}

func (s Step) administers() string {
	switch s.Action {
	case CompactEtcd:
		return "compact etcd"
	case DefragmentEtcd:
		return "defragment etcd"
	case WithdrawDiscovery:
		return "let only the users of the load read discovery, not every authenticated user"
	case GrantDiscovery:
		return "let the user system:apiserver read discovery"
	default:
		return fmt.Sprintf("delete the identity lease of %s", s.Server)
	}
}
