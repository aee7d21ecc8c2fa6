package workload

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// Names that no server serves. The group is under .invalid (RFC 2606), which nobody can own.
const (
	unknownGroup       = "nosuchgroup.skewproof.invalid"
	unknownVersion     = "v987"
	unknownResource    = "nosuchthings"
	unknownSubresource = "nosuchsubresource"
)

var readAndWrite = []string{"create", "delete", "get", "list", "patch", "update", "watch"}

// unserved makes up resources that no server serves, similar to served ones, because a server may
// confuse similar names. A resource that only some servers serve is a useful neighbour too: its
// group version exists on one server and may be unknown on the next.
func unserved(served []Probe) []Probe {
	if len(served) == 0 {
		return nil
	}
	nobody := func(group, version, resource string) Probe {
		return Probe{Class: Nowhere, Resource: history.Resource{
			GVR: history.GVR{Group: group, Version: version, Resource: resource}, Namespaced: true, Verbs: readAndWrite,
		}}
	}
	probes := []Probe{nobody(unknownGroup, "v1", unknownResource)}
	for _, neighbour := range neighbours(served) {
		r := neighbour.Resource
		probes = append(probes,
			nobody(r.Group, unknownVersion, r.Resource),
			nobody(r.Group, r.Version, unknownResource))
		if slices.Contains(r.Verbs, "get") {
			probes = append(probes, Probe{Class: Nowhere, Resource: r, Subresource: unknownSubresource})
		}
	}
	slices.SortFunc(probes, compareProbes)
	return slices.CompactFunc(probes, func(a, b Probe) bool { return compareProbes(a, b) == 0 })
}

// neighbours returns one resource of the core group, one of a named group, and one of class
// Somewhere.
func neighbours(served []Probe) []Probe {
	var found []Probe
	for _, wanted := range []func(Probe) bool{
		func(p Probe) bool {
			return p.Class == Everywhere && p.Resource.Group == "" && p.Resource.Resource == "configmaps"
		},
		func(p Probe) bool { return p.Class == Everywhere && p.Resource.Group != "" },
		func(p Probe) bool { return p.Class == Somewhere && p.Subresource == "" },
	} {
		if i := slices.IndexFunc(served, wanted); i >= 0 {
			found = append(found, served[i])
		}
	}
	return found
}
