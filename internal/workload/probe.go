package workload

import (
	"cmp"
	"maps"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// Class says which servers serve a resource.
type Class string

// The classes of resources.
const (
	Everywhere Class = "everywhere" // every server serves it
	Somewhere  Class = "somewhere"  // at least one serves it and at least one does not
	Nowhere    Class = "nowhere"    // no server serves it
)

// Probe is a resource or subresource for which requests are sent.
type Probe struct {
	// Resource has the verbs and subresources that any of the servers lists.
	Resource history.Resource
	Class    Class
	// Servers are the servers that serve it themselves, sorted. Empty for Nowhere.
	Servers []string
	// Subresource, if set, is the only target of requests, and Class and Servers are about it. It
	// is a subresource that only some of the resource's servers have, or, in class Nowhere, one
	// that does not exist.
	Subresource string
}

// Classify turns ground truth (each live server's own document) into probes, sorted by resource. It
// adds resources that no server serves: an unknown group, an unknown version of a known group, an
// unknown resource of a known version, unknown subresources. Without documents there are no probes.
func Classify(docs map[string]history.Document) []Probe {
	var all []history.Document
	servers := map[history.GVR][]string{}
	for _, server := range slices.Sorted(maps.Keys(docs)) {
		all = append(all, docs[server])
		for _, r := range docs[server].Resources {
			if !slices.Contains(servers[r.GVR], server) {
				servers[r.GVR] = append(servers[r.GVR], server)
			}
		}
	}
	var probes []Probe
	for _, r := range Union(all...).Resources {
		p := Probe{Resource: r, Class: Somewhere, Servers: servers[r.GVR]}
		if len(p.Servers) == len(docs) {
			p.Class = Everywhere
		}
		probes = append(probes, p)
		probes = append(probes, skewedSubresources(p, docs)...)
	}
	slices.SortFunc(probes, compareProbes)
	return append(probes, unserved(probes)...)
}

// skewedSubresources returns probes for the subresources that not all servers of the resource have.
// For example, storage.k8s.io/v1 csinodes has a status in 1.37 but not in 1.36.
func skewedSubresources(p Probe, docs map[string]history.Document) []Probe {
	var skewed []Probe
	for _, s := range p.Resource.Subresources {
		var having []string
		for _, server := range p.Servers {
			if hasSubresource(docs[server], p.Resource.GVR, s.Name) {
				having = append(having, server)
			}
		}
		if len(having) < len(p.Servers) {
			skewed = append(skewed, Probe{Resource: p.Resource, Class: Somewhere, Servers: having, Subresource: s.Name})
		}
	}
	return skewed
}

func hasSubresource(doc history.Document, gvr history.GVR, name string) bool {
	return slices.ContainsFunc(doc.Resources, func(r history.Resource) bool {
		return r.GVR == gvr && slices.ContainsFunc(r.Subresources, func(s history.Subresource) bool { return s.Name == name })
	})
}

// Union lists the resources of all documents, each once, with the verbs and subresources of all. No
// server has sent this document, so it has no hash.
func Union(docs ...history.Document) history.Document {
	var all history.Document
	at := map[history.GVR]int{}
	for _, doc := range docs {
		for _, r := range doc.Resources {
			if i, listed := at[r.GVR]; listed {
				unite(&all.Resources[i], r)
				continue
			}
			at[r.GVR] = len(all.Resources)
			all.Resources = append(all.Resources, clone(r))
		}
	}
	return all
}

func clone(r history.Resource) history.Resource {
	r.Verbs = slices.Clone(r.Verbs)
	r.Subresources = slices.Clone(r.Subresources)
	return r
}

// unite adds to r the verbs and subresources of the same resource in another server's document.
func unite(r *history.Resource, other history.Resource) {
	for _, v := range other.Verbs {
		if !slices.Contains(r.Verbs, v) {
			r.Verbs = append(r.Verbs, v)
		}
	}
	for _, s := range other.Subresources {
		if !slices.ContainsFunc(r.Subresources, func(have history.Subresource) bool { return have.Name == s.Name }) {
			r.Subresources = append(r.Subresources, s)
		}
	}
}

func compareProbes(a, b Probe) int {
	g, h := a.Resource.GVR, b.Resource.GVR
	return cmp.Or(cmp.Compare(g.Group, h.Group), cmp.Compare(g.Version, h.Version), cmp.Compare(g.Resource, h.Resource),
		cmp.Compare(a.Subresource, b.Subresource))
}

// Classifier is like [Classify] but has a memory. A resource that was served once and no longer is
// becomes a probe of class Nowhere. Servers and clients that remember it make other mistakes than
// with a resource that never existed. The zero value is empty. It is not safe for concurrent use.
type Classifier struct{ once history.Document }

// Classify classifies the resources of the live servers, and those that were served at an earlier
// call.
func (c *Classifier) Classify(docs map[string]history.Document) []Probe {
	var live []history.Document
	for _, server := range slices.Sorted(maps.Keys(docs)) {
		live = append(live, docs[server])
	}
	now := Union(live...)
	probes := Classify(docs)
	if len(probes) > 0 {
		probes = append(probes, departed(c.once, now)...)
	}
	c.once = Union(c.once, now)
	return probes
}

// departed returns probes for everything that was served once and is not now: resources, or
// subresources of served resources.
func departed(once, now history.Document) []Probe {
	var probes []Probe
	for _, r := range once.Resources {
		i := slices.IndexFunc(now.Resources, func(still history.Resource) bool { return still.GVR == r.GVR })
		if i < 0 {
			probes = append(probes, Probe{Resource: clone(r), Class: Nowhere})
			continue
		}
		for _, s := range r.Subresources {
			if !hasSubresource(now, r.GVR, s.Name) {
				probes = append(probes, Probe{Resource: clone(r), Class: Nowhere, Subresource: s.Name})
			}
		}
	}
	slices.SortFunc(probes, compareProbes)
	return probes
}

// ReadVerbs are the verbs that change nothing. A chooser with Options.ReadOnly and a sweep of an
// existing cluster use only these.
var ReadVerbs = []string{"get", "list", "watch"}

// connecting are the subresources whose GET asks for a connection and not for an object.
var connecting = []string{"exec", "attach", "portforward", "proxy"}

// readable returns the part of the probes that can be requested by reading. The remaining resources
// have no verb that writes, so the chooser cannot choose one.
func readable(probes []Probe) []Probe {
	var out []Probe
	writes := func(verb string) bool { return !slices.Contains(ReadVerbs, verb) }
	for _, p := range probes {
		p.Resource = clone(p.Resource)
		p.Resource.Verbs = slices.DeleteFunc(p.Resource.Verbs, writes)
		p.Resource.Subresources = slices.DeleteFunc(p.Resource.Subresources, func(s history.Subresource) bool {
			return slices.Contains(connecting, s.Name) || !slices.Contains(s.Verbs, "get")
		})
		for i, s := range p.Resource.Subresources {
			p.Resource.Subresources[i].Verbs = slices.DeleteFunc(slices.Clone(s.Verbs), writes)
		}
		// A resource that cannot be read could only be written to.
		if p.Subresource == "" && len(p.Resource.Verbs) == 0 {
			continue
		}
		if p.Class == Somewhere && p.Subresource != "" &&
			!slices.ContainsFunc(p.Resource.Subresources, func(s history.Subresource) bool { return s.Name == p.Subresource }) {
			continue
		}
		out = append(out, p)
	}
	return out
}
