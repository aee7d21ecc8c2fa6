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

// Probe is one thing to ask for.
type Probe struct {
	// Resource with the verbs and subresources that any of the servers lists for it.
	Resource history.Resource
	Class    Class
	// Servers that serve it by themselves, sorted. Empty for Nowhere.
	Servers []string
	// Subresource, if set, is the only thing asked for, and what Class and Servers are about: one
	// that only some of the servers of the resource have, or, in class Nowhere, a made-up one.
	Subresource string
}

// Classify turns ground truth (each live server's own document) into probes, sorted by resource. To
// what the documents list it adds resources that nobody serves: an unknown group, an unknown
// version of a known group, an unknown resource of a known version, unknown subresources. Without
// documents there are none.
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

// skewedSubresources are those that not all servers of the resource have. Of storage.k8s.io/v1
// csinodes, for example, 1.37 has a status and 1.36 has not.
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

// Union lists what any of the documents lists, each resource once, with the verbs and subresources
// of all. It is no document that was ever answered, so it has no hash.
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

// unite adds to r what another server's document says of the same resource.
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

// Classifier classifies as [Classify] does, and remembers. What was served once and is not any more
// becomes a probe of what nobody serves: servers and clients that do not forget it are wrong in
// another way than with what never existed. The zero value is empty. It is not for concurrent use.
type Classifier struct{ once history.Document }

// Classify classifies what the live servers serve, and what was served at an earlier call.
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

// departed is what was served once and is not now: resources, or subresources of served ones.
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

// ReadVerbs are the verbs that change nothing: what a chooser with Options.ReadOnly, and a sweep of
// servers that are somebody else's, keep to.
var ReadVerbs = []string{"get", "list", "watch"}

// connecting are the subresources whose GET asks for a connection, not for an object.
var connecting = []string{"exec", "attach", "portforward", "proxy"}

// readable is as much of the probes as can be asked for by reading. What is left of a resource has
// no verb that writes, so that nobody can choose one.
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
		// A resource of which nothing can be read could only be written to.
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
