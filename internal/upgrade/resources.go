package upgrade

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/recorded"
)

// key is a resource or a subresource of a version.
type key struct {
	history.GVR
	subresource string
}

// served returns everything that a version serves.
func served(v *recorded.Version) sets.Set[key] {
	all := sets.New[key]()
	for _, r := range v.Document.Resources {
		all.Insert(key{r.GVR, ""})
		for _, s := range r.Subresources {
			all.Insert(key{r.GVR, s.Name})
		}
	}
	return all
}

// only returns what one recording serves and another one does not, by default or with every API on.
// A subresource is listed only if the other version serves its resource.
func only(has, lacks recorded.Recording) []reports.PlanResource {
	on := map[key]string{}
	note := func(a, b sets.Set[key], how string) {
		for k := range a {
			parent := k
			parent.subresource = ""
			if b.Has(k) || k.subresource != "" && !b.Has(parent) {
				continue
			}
			if _, known := on[k]; !known {
				on[k] = how
			}
		}
	}
	note(served(has.Default), served(lacks.Default), reports.PlanByDefault)
	note(served(has.All), served(lacks.All), reports.PlanByRuntimeConfig)
	all := make([]reports.PlanResource, 0, len(on))
	for k, how := range on {
		other := lacks.All
		if how == reports.PlanByDefault {
			other = lacks.Default
		}
		all = append(all, reports.PlanResource{
			GVR: k.GVR, Subresource: k.subresource, On: how, Other: otherVersions(k, other), Users: usersOf(k),
		})
	}
	slices.SortFunc(all, func(a, b reports.PlanResource) int { // "by default" comes first
		return cmp.Or(strings.Compare(a.On, b.On), strings.Compare(a.Name(), b.Name()))
	})
	return all
}

// otherVersions are the versions of its group in which a release serves a resource, in the order of
// its discovery.
func otherVersions(k key, v *recorded.Version) (versions []string) {
	for _, r := range v.Document.Resources {
		if r.Group != k.Group || r.Resource != k.Resource || r.Version == k.Version {
			continue
		}
		for _, s := range r.Subresources {
			if s.Name == k.subresource {
				versions = append(versions, r.Version)
			}
		}
		if k.subresource == "" {
			versions = append(versions, r.Version)
		}
	}
	return versions
}
