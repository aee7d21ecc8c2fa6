package recorded

import (
	"cmp"
	"slices"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/version"

	"github.com/skewproof/skewproof/internal/history"
)

// shared are resources that every release serves and that can be written. One of them is in the
// core group.
var shared = []history.GVR{
	{Version: "v1", Resource: "configmaps"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
}

// plain are resources whose objects can be created without other objects, keys or certificates, and
// without effect on the cluster. They come first in their class, so that a schedule found in the
// simulator can be carried out on real servers.
var plain = []history.GVR{
	{Group: "resource.k8s.io", Resource: "devicetaintrules"},
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"},
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"},
}

// Skew lists resources by which two releases can be told apart, and some that both serve. Each is
// served by at least one of the two releases. There are five classes. The list takes the first
// resource of each class, then the second of each, and so on, so that every beginning of the list
// is a fair choice:
//
//  1. only the newer release serves it
//  2. only the older release serves it
//  3. every release serves it (configmaps, leases, deployments)
//  4. both releases serve it, with different subresources
//  5. it was added, changed or removed in another recorded release: one resource for each such
//     release, newest first; these tell a third server's release from the two
//
// Classes 1, 2 and 4 begin with the resources in plain, then have those with all usual verbs, then
// the stable ones. The order is the same in every process, and does not depend on the order of the
// two arguments. If both releases are the same, classes 1, 2 and 4 are empty. An unknown release
// gives the error of [Get].
func Skew(from, to string) ([]history.GVR, error) {
	if semver.Compare(from, to) > 0 {
		from, to = to, from
	}
	older, err := Get(from)
	if err != nil {
		return nil, err
	}
	newer, err := Get(to)
	if err != nil {
		return nil, err
	}
	served := func(gvr history.GVR) bool { return older.Find(gvr) != nil || newer.Find(gvr) != nil }

	diff := changeOf(older, newer)
	others, err := elsewhere(served)
	if err != nil {
		return nil, err
	}
	return interleave(diff.came, diff.went, shared, diff.changed, others), nil
}

// elsewhere returns one resource for each recorded release that changed something, newest first. It
// is the first served resource that was added in the release, else one whose subresources changed,
// else one that was removed.
func elsewhere(served func(history.GVR) bool) ([]history.GVR, error) {
	var found []history.GVR
	names := Released()
	for i := len(names) - 1; i > 0; i-- {
		before, err := Get(names[i-1])
		if err != nil {
			return nil, err
		}
		after, err := Get(names[i])
		if err != nil {
			return nil, err
		}
		diff := changeOf(before, after)
		all := slices.Concat(diff.came, diff.changed, diff.went)
		if first := slices.IndexFunc(all, served); first >= 0 {
			found = append(found, all[first])
		}
	}
	return found, nil
}

// change is the difference between the resources of two releases. Each list begins with the most
// useful resource.
type change struct{ came, went, changed []history.GVR }

func changeOf(older, newer *Version) change {
	var came, went, changed []history.Resource
	for _, r := range newer.Document.Resources {
		switch before := older.Find(r.GVR); {
		case before == nil:
			came = append(came, r)
		case !slices.EqualFunc(before.Subresources, r.Subresources, func(a, b history.Subresource) bool { return a.Name == b.Name }):
			changed = append(changed, r)
		}
	}
	for _, r := range older.Document.Resources {
		if newer.Find(r.GVR) == nil {
			went = append(went, r)
		}
	}
	return change{came: ranked(came), went: ranked(went), changed: ranked(changed)}
}

// Find returns the entry of a resource in the release's document; nil if there is none.
func (v *Version) Find(gvr history.GVR) *history.Resource {
	i := slices.IndexFunc(v.Document.Resources, func(r history.Resource) bool { return r.GVR == gvr })
	if i < 0 {
		return nil
	}
	return &v.Document.Resources[i]
}

// Lacking lists the resources that one release serves and another does not, in the order of [Skew].
func Lacking(serves, lacks *Version) []history.GVR { return changeOf(lacks, serves).came }

// ranked sorts resources by their verbs and by how easily objects can be created, then by
// stability, then by the order of the document.
func ranked(resources []history.Resource) []history.GVR {
	slices.SortStableFunc(resources, func(a, b history.Resource) int {
		return cmp.Or(cmp.Compare(hardship(a), hardship(b)), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	gvrs := make([]history.GVR, len(resources))
	for i, r := range resources {
		gvrs[i] = r.GVR
	}
	return gvrs
}

func hardship(r history.Resource) int {
	if slices.Contains(plain, history.GVR{Group: r.Group, Resource: r.Resource}) {
		return 0
	}
	for _, verb := range []string{"create", "delete", "get", "list", "patch", "update", "watch"} {
		if !slices.Contains(r.Verbs, verb) {
			return 2
		}
	}
	return 1
}

// interleave takes the first resource of each list, then the next of each, and so on. It skips
// resources that it has already taken.
func interleave(lists ...[]history.GVR) []history.GVR {
	var all []history.GVR
	for took := true; took; {
		took = false
		for i := range lists {
			fresh := slices.IndexFunc(lists[i], func(gvr history.GVR) bool { return !slices.Contains(all, gvr) })
			if fresh < 0 {
				continue
			}
			all, lists[i], took = append(all, lists[i][fresh]), lists[i][fresh+1:], true
		}
	}
	return all
}
