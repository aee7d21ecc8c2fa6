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
)

var administration = []Action{CompactEtcd, DefragmentEtcd, DeleteLease}

// Administers reports whether the action is an administrator's.
func (a Action) Administers() bool { return slices.Contains(administration, a) }

// administer applies an administrator's step.
func (s *State) administer(step Step) error {
	if step.Action == DeleteLease && s.server(step.Server) == nil {
		return fmt.Errorf("%s: no server %q in the plan", step.Action, step.Server)
	}
	return nil
}

func (s Step) administers() string {
	switch s.Action {
	case CompactEtcd:
		return "compact etcd"
	case DefragmentEtcd:
		return "defragment etcd"
	default:
		return fmt.Sprintf("delete the identity lease of %s", s.Server)
	}
}
