// Package gates decides from recordings whether a kube-apiserver starts with its flags, and which
// feature gates are then on. Kubernetes' own packages parse the flags and resolve the gates. A
// recording has all flags and gates of one version. skewproof's program kube-apiserver-flags, which
// is built with that version, writes it.
package gates

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/mod/semver"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"

	"github.com/skewproof/skewproof/sim/recorded"
)

// Recording is what the kube-apiserver of a version has that flags can name.
type Recording struct {
	Version string `json:"version"`
	Gates   []Gate `json:"gates"`
	Flags   []Flag `json:"flags"`
	// APIs are the versions of API groups that --runtime-config may name, such as "/v1" and "apps/v1",
	// served or not. None means that they are not known.
	APIs []string `json:"apis"`
	// Plugins are the admission plugins. None means that they are not known.
	Plugins []string `json:"plugins"`
	// Source says where the gates were read, if not by the program. Then the flags are not known, nor
	// which gates are locked or depend on others.
	Source string `json:"source,omitempty"`
}

// Gate is a feature gate, with its stages from the oldest to the newest.
type Gate struct {
	Name   string   `json:"name"`
	Stages []Stage  `json:"stages"`
	Needs  []string `json:"needs,omitempty"` // the gates on which it depends
}

// Stage is the state of a feature gate since a minor version. Before v1.31, only the newest stage
// is recorded.
type Stage struct {
	Since            string `json:"since,omitempty"`
	Stage            string `json:"stage"` // ALPHA, BETA, DEPRECATED, PRE-ALPHA, or "" for GA
	Default          bool   `json:"default,omitempty"`
	Locked           bool   `json:"locked,omitempty"`
	MinCompatibility string `json:"minCompatibility,omitempty"`
}

// Flag is a flag of a kube-apiserver.
type Flag struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // as pflag names it
	Default string `json:"default,omitempty"`
	NoValue string `json:"noValue,omitempty"` // the value that it has without one; "" if it takes one
	Short   string `json:"short,omitempty"`
}

// Find returns the recording of a version, or of the nearest patch of its minor version. The error
// wraps [recorded.ErrNoFlags] if there is none.
func Find(name string, directories ...string) (Recording, error) {
	body, of, err := recorded.Flags(name, directories...)
	if err != nil {
		return Recording{}, err
	}
	key := of + string(body)
	if r, ok := parsed.Load(key); ok {
		return r.(Recording), nil
	}
	r, err := Parse(of, body)
	if err == nil {
		parsed.Store(key, r)
	}
	return r, err
}

// parsed has the recordings that were read, because a plan asks for them many times.
var parsed sync.Map

// Parse reads a recording.
func Parse(of string, body []byte) (r Recording, err error) {
	if err := json.Unmarshal(body, &r); err != nil {
		return Recording{}, fmt.Errorf("read the flags and feature gates of %s: %w", of, err)
	}
	if r.Version != of && r.Version != recorded.As(of) || len(r.Gates) == 0 || (len(r.Flags) == 0) == (r.Source == "") {
		return Recording{}, fmt.Errorf("read the flags and feature gates of %s: it has %d gates and %d flags of %q",
			of, len(r.Gates), len(r.Flags), r.Version)
	}
	r.Version = of
	if _, err := r.featureGate(); err != nil {
		return Recording{}, err
	}
	return r, nil
}

func (r Recording) flag(name string) (Flag, bool) {
	i := slices.IndexFunc(r.Flags, func(f Flag) bool { return f.Name == name })
	if i < 0 {
		return Flag{}, false
	}
	return r.Flags[i], true
}

// featureGate is what Kubernetes resolves feature gates with, filled from the recording.
func (r Recording) featureGate() (featuregate.MutableVersionedFeatureGate, error) {
	at, err := version.ParseGeneric(r.Version)
	if err != nil {
		return nil, fmt.Errorf("feature gates of %q: %w", r.Version, err)
	}
	all := featuregate.NewVersionedFeatureGate(version.MajorMinor(at.Major(), at.Minor()))
	known, needs := map[featuregate.Feature]featuregate.VersionedSpecs{}, map[featuregate.Feature][]featuregate.Feature{}
	var errs []error
	for _, g := range r.Gates {
		if g.Name == "AllAlpha" || g.Name == "AllBeta" { // every featureGate has them
			continue
		}
		var specs featuregate.VersionedSpecs
		for i, s := range g.Stages {
			if i > 0 && s.MinCompatibility == g.Stages[i-1].MinCompatibility { // AddVersioned inherits it again
				s.MinCompatibility = ""
			}
			spec, err := s.spec()
			errs = append(errs, err)
			specs = append(specs, spec)
		}
		known[featuregate.Feature(g.Name)] = specs
		for _, n := range g.Needs {
			needs[featuregate.Feature(g.Name)] = append(needs[featuregate.Feature(g.Name)], featuregate.Feature(n))
		}
	}
	if err := errors.Join(append(errs, all.AddVersioned(known), all.AddDependencies(needs))...); err != nil {
		return nil, fmt.Errorf("feature gates of %s: %w", r.Version, err)
	}
	return all, nil
}

// stages have the stages by their texts. Their type has no name outside of featuregate.
var stages = map[string]featuregate.FeatureSpec{
	string(featuregate.PreAlpha): {PreRelease: featuregate.PreAlpha}, string(featuregate.Alpha): {PreRelease: featuregate.Alpha},
	string(featuregate.Beta): {PreRelease: featuregate.Beta}, string(featuregate.Deprecated): {PreRelease: featuregate.Deprecated},
}

func (s Stage) spec() (spec featuregate.FeatureSpec, err error) {
	spec = stages[s.Stage]
	spec.Default, spec.LockToDefault = s.Default, s.Locked
	if spec.Version, err = version.Parse(cmp.Or(s.Since, "0.0")); err != nil {
		return spec, err
	}
	if s.MinCompatibility != "" {
		spec.MinCompatibilityVersion, err = version.Parse(s.MinCompatibility)
	}
	return spec, err
}

// ofProxy is the feature gate of the Mixed Version Proxy in every version. A server that emulates
// an older version has the stage of that version. Source: UnknownVersionInteroperabilityProxy in
// k8s.io/apiserver/pkg/features/kube_features.go; a test compares the recordings.
var ofProxy = Gate{Name: Proxy, Stages: []Stage{{Since: "1.28", Stage: "ALPHA"}, {Since: "1.36", Stage: "BETA", Default: true}}}

// ProxyOn reports whether a kube-apiserver that behaves like a version, such as "v1.36.3" or
// "1.36", has its Mixed Version Proxy on with these lists of feature gates. It needs no recording
// of the version, and ignores gates that do not decide about this one.
func ProxyOn(behaves string, lists ...string) bool {
	like, err := version.ParseGeneric(behaves)
	if err != nil {
		return false
	}
	gate, err := Recording{Version: like.String(), Gates: []Gate{ofProxy}}.featureGate()
	if err != nil {
		return false
	}
	decisive := Read(lists...)
	maps.DeleteFunc(decisive, func(name string, _ bool) bool { return name != Proxy && name != "AllAlpha" && name != "AllBeta" })
	return decisive != nil && gate.SetFromMap(decisive) == nil && gate.Enabled(Proxy) // a server that refuses a list does not start
}

// completed returns a recording in which nothing that is not recorded is refused: without gates it
// has every gate that somebody sets, and knows of the Mixed Version Proxy only its default. Without
// flags it has every flag that somebody sets.
func (r Recording) completed(name string, flags []Set) Recording {
	if len(r.Flags) > 0 {
		return r
	}
	seen := map[string]bool{Proxy: true}
	assumed := len(r.Gates) == 0
	if assumed {
		r.Version, r.Gates = semver.Canonical(name), []Gate{ofProxy}
	}
	for _, f := range flags {
		if f.Name != featureGates {
			flag := Flag{Name: f.Name, Type: "string"}
			if f.Name == runtimeConfig {
				flag.Type = "mapStringString"
			}
			if f.Bare {
				flag.NoValue = "true"
			}
			r.Flags = append(r.Flags, flag)
			continue
		}
		for gate := range Read(f.Value) {
			if assumed && !seen[gate] {
				seen[gate] = true
				r.Gates = append(r.Gates, Gate{Name: gate, Stages: []Stage{{Since: "0.0", Stage: "BETA"}}})
			}
		}
	}
	r.Flags = append(r.Flags, Flag{Name: featureGates, Type: "mapStringBool"})
	if semver.Compare(name, "v1.31") >= 0 {
		r.Flags = append(r.Flags, Flag{Name: emulated, Type: "stringSlice"})
	}
	return r
}

// Flip is a feature gate that is on by default in only one of two versions.
type Flip struct {
	Name   string `json:"name"`
	On     bool   `json:"on"`     // in the newer version
	Locked bool   `json:"locked"` // in the newer version
	// Dependents are gates that are on by default in the newer version and need this one.
	Dependents []string `json:"dependents,omitempty"`
}

// Flips returns the feature gates whose default differs between two versions, by name. A gate that
// a version does not have is off. It reads recordings as [Find] does.
func Flips(from, to string, directories ...string) (flips []Flip, err error) {
	var newer Recording
	var defaults [2]featuregate.MutableVersionedFeatureGate
	for i, version := range []string{from, to} {
		if newer, err = Find(version, directories...); err != nil {
			return nil, err
		}
		if defaults[i], err = newer.featureGate(); err != nil {
			return nil, err
		}
	}
	was, is := defaults[0].GetAll(), defaults[1].GetAll()
	for _, g := range newer.Gates {
		name := featuregate.Feature(g.Name)
		if was[name].Default == is[name].Default {
			continue
		}
		flip := Flip{Name: g.Name, On: is[name].Default, Locked: is[name].LockToDefault}
		for found := true; found; { // dependents of dependents, too
			found = false
			for _, of := range newer.Gates {
				needs := func(n string) bool { return n == g.Name || slices.Contains(flip.Dependents, n) }
				if is[featuregate.Feature(of.Name)].Default && slices.ContainsFunc(of.Needs, needs) && !slices.Contains(flip.Dependents, of.Name) {
					flip.Dependents, found = append(flip.Dependents, of.Name), true
				}
			}
		}
		flips = append(flips, flip)
	}
	return flips, nil
}
