package search

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/scenario"
	"github.com/skewproof/skewproof/sim/recorded"
)

// target is a resource or a subresource to request.
type target struct {
	gvr         history.GVR
	subresource string
	served      versionSet // the versions that serve it
}

// versionSet is a set of the versions of a spec. Bit i stands for version i.
type versionSet uint8

func (s versionSet) has(i int) bool { return s&(1<<i) != 0 }

// targets are the resources and subresources that the requests of a spec can be about.
type targets struct {
	skewed []target // only some versions serve these
	shared []target // all versions serve these
	nobody []target // no version serves these
	// extensions are the resources of definitions. The steps decide whether a server serves them.
	extensions []target
}

// newTargets groups the spec's resources and their subresources by the versions that serve them.
func newTargets(spec Spec, definitions []scenario.Definition) (targets, error) {
	t := targets{nobody: []target{
		{gvr: history.GVR{Group: "nobody.example.com", Version: "v1", Resource: "ghosts"}},
		{gvr: history.GVR{Version: "v1", Resource: "ghosts"}},
	}}
	gvrs, err := spec.GVRs()
	if err != nil {
		return t, err
	}
	var versions []*recorded.Version
	for _, name := range spec.versions() {
		v, err := recorded.Get(name)
		if err != nil {
			return t, err
		}
		versions = append(versions, v)
	}
	everywhere := versionSet(1<<len(versions) - 1)
	for _, gvr := range gvrs {
		for _, sub := range subresources(gvr, versions...) {
			one := target{gvr: gvr, subresource: sub}
			for i, v := range versions {
				if serves(v, gvr, sub) {
					one.served |= 1 << i
				}
			}
			switch one.served {
			case 0:
			case everywhere:
				t.shared = append(t.shared, one)
			default:
				t.skewed = append(t.skewed, one)
			}
		}
		t.nobody = append(t.nobody, target{gvr: gvr, subresource: "ghost"})
	}
	for _, d := range definitions {
		for _, v := range d.Versions {
			one := target{gvr: history.GVR{Group: d.Group, Version: v, Resource: d.Resource}}
			if !slices.Contains(t.extensions, one) {
				t.extensions = append(t.extensions, one)
			}
		}
	}
	return t, nil
}

// subresources returns the subresources of a resource in any of the versions, after "", which
// stands for the resource itself.
func subresources(gvr history.GVR, versions ...*recorded.Version) []string {
	all := []string{""}
	for _, v := range versions {
		r := v.Find(gvr)
		for i := 0; r != nil && i < len(r.Subresources); i++ {
			if name := r.Subresources[i].Name; !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

func serves(v *recorded.Version, gvr history.GVR, subresource string) bool {
	r := v.Find(gvr)
	return r != nil && (subresource == "" || slices.ContainsFunc(r.Subresources,
		func(s history.Subresource) bool { return s.Name == subresource }))
}
