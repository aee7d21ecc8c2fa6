// Package search looks for schedules under which a policy violates an invariant: it generates cases
// from seeds, runs them in the simulator, judges them, shrinks those that fail, and writes repro
// files.
package search

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
		if err := change(&policy, c); err != nil {
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

// change sets one switch.
func change(p *proxy.Policy, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("change %q: want SWITCH=VALUE, such as Knowledge.KeepLastGood=true", text)
	}
	for _, sw := range switches(p) {
		if sw.Name != name {
			continue
		}
		if err := sw.set(value); err != nil {
			return fmt.Errorf("change %q: %w", text, err)
		}
		return nil
	}
	return fmt.Errorf("change %q: no switch %q; docs/policies.md lists them", text, name)
}

// Switch is one field of a policy.
type Switch struct {
	Name  string // "Knowledge.KeepLastGood"
	value reflect.Value
}

// switches returns the fields of a policy, in the order of their declaration.
func switches(p *proxy.Policy) []Switch {
	var all []Switch
	groups := reflect.ValueOf(p).Elem()
	for i := range groups.NumField() {
		g := groups.Field(i)
		if g.Kind() != reflect.Struct {
			continue
		}
		for j := range g.NumField() {
			all = append(all, Switch{groups.Type().Field(i).Name + "." + g.Type().Field(j).Name, g.Field(j)})
		}
	}
	return all
}

// String returns the value in the form that a change uses.
func (s Switch) String() string { return fmt.Sprint(s.value.Interface()) }

// set parses a value in the form of [Switch.String] and docs/policies.md. The error says which
// values are allowed.
func (s Switch) set(text string) error {
	switch s.value.Interface().(type) {
	case bool:
		b, err := parseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		s.value.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return errors.New("want a whole number, 0 or more")
		}
		s.value.SetInt(int64(n))
	case float64: // a fraction of something
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return errors.New("want a number from 0 to 1")
		}
		s.value.SetFloat(f)
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return errors.New("want a time such as 500ms, 30s or 5m, 0s or more")
		}
		s.value.SetInt(int64(d))
	case proxy.ExtensionPolicy:
		e, err := proxy.ParseExtensionPolicy(text)
		if err != nil {
			return err
		}
		s.value.SetInt(int64(e))
	case proxy.IncompletePolicy:
		i, err := proxy.ParseIncompletePolicy(text)
		if err != nil {
			return err
		}
		s.value.SetInt(int64(i))
	case string:
		s.value.SetString(text)
	default:
		return fmt.Errorf("its type %s cannot be set", s.value.Type())
	}
	return nil
}

// parseBool also accepts yes and no, as docs/policies.md writes them.
func parseBool(text string) (bool, error) {
	switch text {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	}
	return strconv.ParseBool(text)
}

// differences returns the changes that turn one policy into another, one for each switch.
func differences(from, to proxy.Policy) []string {
	a, b := switches(&from), switches(&to)
	var all []string
	for i := range a {
		if a[i].String() != b[i].String() {
			all = append(all, b[i].Name+"="+b[i].String())
		}
	}
	return all
}
