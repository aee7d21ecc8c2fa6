// Package search looks for schedules under which a policy violates an invariant: it generates cases
// from seeds, runs them in the simulator, judges them, shrinks those that fail, and writes repro
// files.
package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/release"
	"github.com/skewproof/skewproof/proxy"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim"
	"github.com/skewproof/skewproof/sim/recorded"
)

// Spec says what to search: a policy with changes, on a control plane of two versions.
type Spec reports.SearchSpec

// DefaultRequests is the number of requests in a generated case if its Spec does not say.
const DefaultRequests = 20

// MaxServers, MaxRequests and MaxVersions are the maximum values in a Spec.
const (
	MaxServers  = 100
	MaxRequests = 10_000
	MaxVersions = 3
)

// mostDrawn is the maximum number of servers in a case if the spec gives no number.
const mostDrawn = 5

// String returns the policy with its changes.
func (s Spec) String() string { return reports.SearchSpec(s).String() }

// with returns the spec with one more change.
func (s Spec) with(change string) Spec {
	s.Changes = append(slices.Clip(s.Changes), change)
	return s
}

// requests returns the number of requests in a generated case.
func (s Spec) requests() int { return cmp.Or(s.Requests, DefaultRequests) }

// check reports errors in the numbers of a spec. [Spec.Setup] checks its names.
func (s Spec) check() error {
	switch {
	case s.Servers < 0 || s.Servers > MaxServers:
		return fmt.Errorf("%d servers: want 1 to %d, or 0 for a number that each schedule draws", s.Servers, MaxServers)
	case len(s.Versions) > MaxVersions || len(s.Versions) == 1:
		return fmt.Errorf("%d versions: want 2 to %d", len(s.Versions), MaxVersions)
	case len(s.Versions) > 0 && (s.Versions[0] != s.From || s.Versions[len(s.Versions)-1] != s.To):
		return fmt.Errorf("versions %s: the first must be %s, and the last %s", strings.Join(s.Versions, ", "), s.From, s.To)
	case s.Resources < 0:
		return fmt.Errorf("%d resources: want 0 (all) or more", s.Resources)
	case s.Requests < 0 || s.Requests > MaxRequests:
		return fmt.Errorf("%d requests: want 0 (%d) to %d", s.Requests, DefaultRequests, MaxRequests)
	}
	return nil
}

// versions returns all versions, oldest first.
func (s Spec) versions() []string { return reports.SearchSpec(s).AllVersions() }

// version returns the newest or the oldest version.
func (s Spec) version(newer bool) string {
	if newer {
		return s.To
	}
	return s.From
}

// None names the policy of a control plane with the feature switched off.
const None = "none"

// Build returns the policy that the spec names, with its changes; on is false if the feature is
// off.
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
		if err := policy.Change(c); err != nil {
			return policy, false, err
		}
	}
	return policy, true, nil
}

// impossible returns the states that no schedule can reach, each with the reason.
func (s Spec) impossible() map[sim.State]string {
	policy, on, err := s.Build()
	if err != nil || !on {
		return nil
	}
	return sim.Impossible(policy)
}

// Setup returns the setup for a simulator of the spec.
func (s Spec) Setup() (sim.Setup, error) {
	policy, on, err := s.Build()
	if err != nil {
		return sim.Setup{}, err
	}
	versions := map[string]*recorded.Version{}
	var mu sync.Mutex // protects versions, because several simulators share a setup
	gvrs, err := s.GVRs()
	if err != nil {
		return sim.Setup{}, err
	}
	definitions, err := definitionsOf(s)
	if err != nil {
		return sim.Setup{}, err
	}
	small := func(name string) (*recorded.Version, error) {
		v, err := recorded.Get(name)
		if err == nil && s.Resources > 0 {
			v = v.Small(append(slices.Clip(gvrs), companions(v, definitions)...))
		}
		return v, err
	}
	for _, name := range s.versions() {
		if versions[name], err = small(name); err != nil {
			return sim.Setup{}, err
		}
	}
	return sim.Setup{
		Policy:    func(string) (proxy.Policy, bool) { return policy, on },
		Reference: s.Policy == proxy.Reference().Name, // independent of the spec's changes: a change sets only its switch, and nothing else
		Version: func(name string) (*recorded.Version, error) {
			mu.Lock()
			defer mu.Unlock()
			if v, ok := versions[name]; ok {
				return v, nil
			}
			if versions[release.Of(name)] != nil { // with some of its APIs switched off
				v, err := small(name)
				if err == nil {
					versions[name] = v
				}
				return v, err
			}
			return nil, fmt.Errorf("version %s is not one of those that are searched, %s", name, strings.Join(s.versions(), ", "))
		},
	}, nil
}

// GVRs returns the requested resources. The resources in which the versions differ most come first.
// Three versions are compared in pairs.
func (s Spec) GVRs() ([]history.GVR, error) {
	var pairs [][]history.GVR
	versions := s.versions()
	for newer := len(versions) - 1; newer > 0; newer-- { // the oldest and the newest come first
		for older := range newer {
			these, err := recorded.Skew(versions[older], versions[newer])
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, these)
		}
	}
	var all []history.GVR
	for i, more := 0, true; more; i++ { // the i-th of each pair
		more = false
		for _, these := range pairs {
			if i < len(these) {
				more = true
				if !slices.Contains(all, these[i]) {
					all = append(all, these[i])
				}
			}
		}
	}
	if s.Resources > 0 {
		all = all[:min(s.Resources, len(all))]
	}
	return all, nil
}
