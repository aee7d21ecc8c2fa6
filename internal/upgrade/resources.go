package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

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

// emulating returns what a version serves with flags, and a sentence if it behaves like an older
// version: then it serves only kinds that the other one serves, too.
func emulating(r recorded.Recording, flags Flags) (recorded.Recording, string) {
	name := r.All.Name
	d := decide(name, flags)
	if !d.Starts || d.Emulates == "" || d.Emulates == semver.MajorMinor(name) {
		return r, ""
	}
	like, err := recorded.Find(recorded.Nearest(d.Emulates+".999", recorded.Names(flags.Recordings...)), flags.Recordings...)
	if err != nil {
		return r, fmt.Sprintf("Not checked: what %s serves while it emulates %s, because no patch of %s is recorded.", name, d.Emulates, d.Emulates)
	}
	both := func(of, like *recorded.Version) *recorded.Version {
		kinds := slices.DeleteFunc(slices.Clone(of.Document.Resources), func(r history.Resource) bool { return like.Find(r.GVR) == nil })
		return &recorded.Version{Name: name, Document: history.Document{Resources: kinds}}
	}
	return recorded.Recording{All: both(r.All, like.All), Default: both(r.Default, like.Default)},
		fmt.Sprintf("%s emulates %s, and serves only kinds that %s serves, too. A plan without `--emulated-version` says what changes when you take it away.",
			name, d.Emulates, like.All.Name)
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
