package upgrade

import (
	"cmp"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/recorded"
)

// only returns what one recording serves and another one does not, by default or with every API on.
// A subresource is listed only if the other version serves its resource.
func only(has, lacks recorded.Recording) []reports.PlanResource {
	all := []reports.PlanResource{}
	compare := func(has, lacks *recorded.Version, on string) {
		add := func(gvr history.GVR, subresource string) {
			r := reports.PlanResource{GVR: gvr, Subresource: subresource, On: on, Users: usersOf(gvr)}
			if !slices.ContainsFunc(all, func(known reports.PlanResource) bool { return known.Name() == r.Name() }) {
				r.Other = otherVersions(r, lacks)
				all = append(all, r)
			}
		}
		for _, r := range has.Document.Resources {
			other := lacks.Find(r.GVR)
			if other == nil {
				add(r.GVR, "")
				continue
			}
			for _, s := range r.Subresources {
				if !slices.ContainsFunc(other.Subresources, func(of history.Subresource) bool { return of.Name == s.Name }) {
					add(r.GVR, s.Name)
				}
			}
		}
	}
	compare(has.Default, lacks.Default, reports.PlanByDefault)
	compare(has.All, lacks.All, reports.PlanByRuntimeConfig)
	slices.SortFunc(all, func(a, b reports.PlanResource) int { // "by default" comes first
		return cmp.Or(strings.Compare(a.On, b.On), strings.Compare(a.Name(), b.Name()))
	})
	return all
}

// otherVersions are the versions of its group in which a release serves a resource, in the order of
// its discovery.
func otherVersions(of reports.PlanResource, v *recorded.Version) (versions []string) {
	for _, r := range v.Document.Resources {
		if r.Group != of.Group || r.Resource != of.Resource || r.Version == of.Version {
			continue
		}
		for _, s := range r.Subresources {
			if s.Name == of.Subresource {
				versions = append(versions, r.Version)
			}
		}
		if of.Subresource == "" {
			versions = append(versions, r.Version)
		}
	}
	return versions
}
