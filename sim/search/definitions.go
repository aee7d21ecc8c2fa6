package search

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

// plainDefinitions are custom resources and aggregated APIs in their own groups. Neighbours in the
// list have other versions of the same resource, or names that another one uses.
var plainDefinitions = []scenario.Definition{
	{Group: "stable.example.com", Resource: "widgets", Versions: []string{"v1"}},
	{Group: "stable.example.com", Resource: "widgets", Versions: []string{"v1", "v2"}},
	{Group: "stable.example.com", Resource: "widgets", Versions: []string{"v2"}},
	{Group: "stable.example.com", Resource: "gadgets", Versions: []string{"v1"}, Kind: "Gadget", ShortNames: []string{"g"}, Storage: "v1"},
	// It has the kind of gadgets.
	{Group: "stable.example.com", Resource: "gizmos", Versions: []string{"v1beta1", "v1"}, Kind: "Gadget", Categories: []string{"all"}},
	// It has the names of two others.
	{Group: "stable.example.com", Resource: "gears", Versions: []string{"v2"}, ShortNames: []string{"g", "widgets"}},
	{Group: "metrics.example.com", Resource: "gauges", Versions: []string{"v1beta1"}, Aggregated: true},
	{Group: "metrics.example.com", Resource: "gauges", Versions: []string{"v1beta1", "v1"}, Aggregated: true, Preferred: "v1beta1"},
}

// mostSkewedDefinitions is the maximum number of skewed resources from which definitions are made.
const mostSkewedDefinitions = 4

// definitionsOf returns the definitions from which cases of a spec draw. Most of them concern a
// resource that only some versions have built in. There are four kinds: the same resource as a
// custom resource in the same version; the same in a later version; another resource in the same
// group version; and an aggregated API in the same group. There is no aggregated API in place of a
// built-in group version. It would remove the built-in resources, and while servers learn about it
// one after the other, a history does not say which answers are right.
//
// Half of a case's definitions are plain, because choice 0 comes first.
func definitionsOf(spec Spec) ([]scenario.Definition, error) {
	all := slices.Clone(plainDefinitions)
	var skewed []history.GVR
	versions := spec.versions()
	for newer := len(versions) - 1; newer > 0; newer-- {
		for older := range newer {
			for _, pair := range [...][2]int{{newer, older}, {older, newer}} {
				has, err := recorded.Get(versions[pair[0]])
				if err != nil {
					return nil, err
				}
				lacks, err := recorded.Get(versions[pair[1]])
				if err != nil {
					return nil, err
				}
				these := recorded.Lacking(has, lacks)
				for _, gvr := range these[:min(len(these), mostSkewedDefinitions/2)] {
					if strings.Contains(gvr.Group, ".") && !slices.Contains(skewed, gvr) { // other groups do not accept definitions
						skewed = append(skewed, gvr)
					}
				}
			}
		}
	}
	for _, gvr := range skewed[:min(len(skewed), mostSkewedDefinitions)] {
		all = append(all,
			scenario.Definition{Group: gvr.Group, Resource: gvr.Resource, Versions: []string{gvr.Version}},
			scenario.Definition{Group: gvr.Group, Resource: gvr.Resource, Versions: []string{gvr.Version, laterVersion}, Storage: laterVersion},
			scenario.Definition{Group: gvr.Group, Resource: "gizmos", Versions: []string{gvr.Version, laterVersion}, Categories: []string{"all"}},
			scenario.Definition{Group: gvr.Group, Resource: "gauges", Versions: []string{laterAggregated}, Aggregated: true},
		)
	}
	return all, nil
}

// companions are additional resources for a small document of a release in whose group versions
// there are definitions: the built-in resource with the name of a definition, and one other
// resource of the group version. Without them, the document would not show that the group version
// is built in, as the whole release's document does. A resource of every other version of the group
// is added too: servers that list a version in common agree about the order of the versions beside
// it, and servers that have nothing in common do not.
func companions(v *recorded.Version, definitions []scenario.Definition) (all []history.GVR) {
	for _, d := range definitions {
		listed := map[string]bool{}
		for _, r := range v.Document.Resources {
			if r.Group == d.Group && !listed[r.Version] {
				listed[r.Version] = true
				all = append(all, r.GVR)
			}
		}
		for _, version := range d.Versions {
			other := false
			for _, r := range v.Document.Resources {
				switch {
				case r.Group != d.Group || r.Version != version:
				case r.Resource == d.Resource:
					all = append(all, r.GVR)
				case !other:
					other = true
					all = append(all, r.GVR)
				}
			}
		}
	}
	return all
}

// laterVersion and laterAggregated are versions that no release has.
const laterVersion, laterAggregated = "v9", "v8"

// definition draws a definition.
func (g *Generator) definition() *scenario.Definition {
	if g.chance(3) { // a resource that is defined already, so that definitions are changed and deleted
		for _, o := range g.state.On() {
			if o.Action == scenario.Define {
				return o.Definition
			}
		}
	}
	if skewed := g.definitions[len(plainDefinitions):]; len(skewed) > 0 && g.fault(2) == 1 {
		return &skewed[g.fault(len(skewed))]
	}
	return &g.definitions[g.fault(len(plainDefinitions))]
}

// define creates, changes or deletes a definition.
func (g *Generator) define(d *scenario.Definition) {
	if g.reduces {
		return
	}
	g.defines = true
	step := scenario.Step{Action: scenario.Define, Definition: d}
	if slices.ContainsFunc(g.state.On(), func(o scenario.Step) bool { return o.Definition == d }) {
		step.Action = scenario.Undefine
	} else if d.Aggregated && slices.ContainsFunc(g.state.On(), func(o scenario.Step) bool {
		return o.Definition != nil && o.Definition.Aggregated && o.Definition.Group == d.Group && o.Definition.Resource != d.Resource
	}) {
		return // the extension apiserver of real runs serves one resource of a group
	}
	if g.add(step) && step.Action == scenario.Undefine && g.chance(8) {
		g.add(scenario.Step{Action: scenario.Soak, For: graces[g.fault(len(graces))]})
	}
}
