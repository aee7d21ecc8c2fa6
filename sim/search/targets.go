package search

import (
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/sim/recorded"
)

// target is something that can be asked for.
type target struct {
	gvr         history.GVR
	subresource string
	// older and newer are whether the versions serve it.
	older, newer bool
}

// targets are what the requests of a spec ask for.
type targets struct {
	skewed []target // one version serves it and the other does not
	shared []target // both do
	nobody []target // no version does
}

// extensions are what definitions bring. Whether a server serves them depends on the steps.
var extensions = func() (all []target) {
	for _, d := range definitions {
		for _, v := range d.Versions {
			all = append(all, target{gvr: history.GVR{Group: d.Group, Version: v, Resource: d.Resource}})
		}
	}
	return all
}()

// newTargets sorts what the spec's resources are by who serves them.
func newTargets(spec Spec) (targets, error) {
	t := targets{nobody: []target{
		{gvr: history.GVR{Group: "nobody.example.com", Version: "v1", Resource: "ghosts"}},
		{gvr: history.GVR{Version: "v1", Resource: "ghosts"}},
	}}
	gvrs, err := spec.GVRs()
	if err != nil {
		return t, err
	}
	older, err := recorded.Get(spec.From)
	if err != nil {
		return t, err
	}
	newer, err := recorded.Get(spec.To)
	if err != nil {
		return t, err
	}
	for _, gvr := range gvrs {
		for _, sub := range subresources(gvr, older, newer) {
			one := target{gvr, sub, serves(older, gvr, sub), serves(newer, gvr, sub)}
			switch {
			case one.older != one.newer:
				t.skewed = append(t.skewed, one)
			case one.older:
				t.shared = append(t.shared, one)
			}
		}
		t.nobody = append(t.nobody, target{gvr: gvr, subresource: "ghost"})
	}
	return t, nil
}

// subresources are those of a resource in either version, the first the resource itself.
func subresources(gvr history.GVR, versions ...*recorded.Version) []string {
	all := []string{""}
	seen := map[string]bool{}
	for _, v := range versions {
		for _, r := range v.Document.Resources {
			if r.GVR != gvr {
				continue
			}
			for _, s := range r.Subresources {
				if !seen[s.Name] {
					seen[s.Name] = true
					all = append(all, s.Name)
				}
			}
		}
	}
	return all
}

func serves(v *recorded.Version, gvr history.GVR, subresource string) bool {
	for _, r := range v.Document.Resources {
		if r.GVR != gvr {
			continue
		}
		if subresource == "" {
			return true
		}
		for _, s := range r.Subresources {
			if s.Name == subresource {
				return true
			}
		}
	}
	return false
}
