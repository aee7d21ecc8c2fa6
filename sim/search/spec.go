// Package search looks for schedules under which a policy breaks an invariant: it generates cases from seeds, runs them in the simulator, judges
// them, shrinks what fails to the smallest case that fails alike, and writes it down so that anybody can run it again.
package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Spec says what is searched: a policy, with changes, on a control plane of two versions.
type Spec struct {
	// Policy is the name of a preset, or "none" for the feature switched off.
	Policy string `json:"policy"`
	// Changes are switches of the policy that are set otherwise, such as "Knowledge.KeepLastGood=true".
	Changes []string `json:"changes,omitempty"`
	// From and To are the versions whose recorded documents the servers serve.
	From string `json:"from"`
	To   string `json:"to"`
	// Servers is how many there are.
	Servers int `json:"servers"`
	// Resources is how many of the resources that tell the versions apart are served, the most telling first; 0 is all that is served.
	Resources int `json:"resources"`
	// Requests is how many requests a generated case has; 0 is DefaultRequests.
	Requests int `json:"requests,omitempty"`
}

// MaxServers and MaxRequests bound what is searched.
const (
	MaxServers  = 100
	MaxRequests = 10_000
)

// String is the policy with its changes.
func (s Spec) String() string { return strings.Join(append([]string{s.Policy}, s.Changes...), ", ") }

// changed is the spec with one more change.
func changed(s Spec, change string) Spec {
	s.Changes = append(slices.Clip(s.Changes), change)
	return s
}

// cutChange splits a change into its switch and its value.
func cutChange(change string) (name, value string) {
	name, value, _ = strings.Cut(change, "=")
	return name, value
}

// check reports what is wrong with the numbers of a spec that is to be searched. Its names are for [Spec.Setup] to check.
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

// impossible are the states that no schedule can come to, with the reasons.
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

// GVRs are the resources that are asked for, the most telling first.
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
