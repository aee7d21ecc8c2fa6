// Package search looks for schedules under which a policy violates an invariant: it generates cases from seeds, runs them in the simulator, judges
// them, shrinks those that fail to the smallest case that fails in the same way, and writes that as a repro file, which anybody can run again.
package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Spec says what is searched: a policy, with changes, on a control plane of two versions.
type Spec reports.SearchSpec

// DefaultRequests is how many requests a generated case has where its Spec does not say.
const DefaultRequests = 20

// MaxServers and MaxRequests bound what is searched.
const (
	MaxServers  = 100
	MaxRequests = 10_000
)

// String is the policy with its changes.
func (s Spec) String() string { return reports.SearchSpec(s).String() }

// with is the spec with one more change.
func (s Spec) with(change string) Spec {
	s.Changes = append(slices.Clip(s.Changes), change)
	return s
}

// requests is how many requests a generated case has.
func (s Spec) requests() int { return cmp.Or(s.Requests, DefaultRequests) }

// check reports what is wrong with the numbers of a spec. [Spec.Setup] checks its names.
func (s Spec) check() error {
	switch {
	case s.Servers < 1 || s.Servers > MaxServers:
		return fmt.Errorf("%d servers: want 1 to %d", s.Servers, MaxServers)
	case s.Resources < 0:
		return fmt.Errorf("%d resources: want 0 (all) or more", s.Resources)
	case s.Requests < 0 || s.Requests > MaxRequests:
		return fmt.Errorf("%d requests: want 0 (%d) to %d", s.Requests, DefaultRequests, MaxRequests)
	}
	return nil
}

// None is the policy of a control plane with the feature switched off.
const None = "none"

// Build returns the policy that the spec names, with its changes; on is false where the feature is off.
func (s Spec) Build() (policy proxy.Policy, on bool, err error) {
	if s.Policy == None {
		if len(s.Changes) > 0 {
			return policy, false, fmt.Errorf("policy %s has no switches to change (%s)", None, strings.Join(s.Changes, ", "))
		}
		return policy, false, nil
	}
	if policy, err = proxy.PresetNamed(s.Policy); err != nil {
		return policy, false, fmt.Errorf("%w, or %s for the feature switched off", err, None)
	}
	for _, c := range s.Changes {
		if err := change(&policy, c); err != nil {
			return policy, false, err
		}
	}
	return policy, true, nil
}

// impossible are the states that no schedule can reach, with the reasons.
func (s Spec) impossible() map[sim.State]string {
	policy, on, err := s.Build()
	if err != nil || !on {
		return nil
	}
	return sim.Impossible(policy)
}

// Setup returns what a simulator of the spec needs.
func (s Spec) Setup() (sim.Setup, error) {
	policy, on, err := s.Build()
	if err != nil {
		return sim.Setup{}, err
	}
	versions := map[string]*recorded.Version{}
	gvrs, err := s.GVRs()
	if err != nil {
		return sim.Setup{}, err
	}
	for _, name := range []string{s.From, s.To} {
		v, err := recorded.Get(name)
		if err != nil {
			return sim.Setup{}, err
		}
		if s.Resources > 0 {
			v = v.Small(gvrs)
		}
		versions[name] = v
	}
	return sim.Setup{
		Policy:  func(string) (proxy.Policy, bool) { return policy, on },
		Sidecar: s.Policy == proxy.Reference().Name, // whatever its changes: a change stands for what that switch does, and nothing else
		Version: func(name string) (*recorded.Version, error) {
			if v, ok := versions[name]; ok {
				return v, nil
			}
			return nil, fmt.Errorf("version %s is not one of the two that are searched, %s and %s", name, s.From, s.To)
		},
	}, nil
}

// GVRs are the resources that are requested: those in which the versions differ most first.
func (s Spec) GVRs() ([]history.GVR, error) {
	all, err := recorded.Skew(s.From, s.To)
	if err != nil {
		return nil, err
	}
	if s.Resources > 0 {
		all = all[:min(s.Resources, len(all))]
	}
	return all, nil
}
