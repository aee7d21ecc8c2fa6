package traffic

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// ReadVerbs are the verbs that change nothing: what a load with Options.ReadOnly, and a sweep of servers that are somebody else's, keep to.
var ReadVerbs = []string{"get", "list", "watch"}

// connecting are the subresources whose GET asks for a connection into a container or to what stands behind an object.
var connecting = []string{"exec", "attach", "portforward", "proxy"}

// readable is as much of the probes as can be asked for by reading. What is left of a resource has no verb that writes, so that nobody can
// choose one.
func readable(probes []Probe) []Probe {
	var out []Probe
	for _, p := range probes {
		p.Resource = clone(p.Resource)
		p.Resource.Verbs = reads(p.Resource.Verbs)
		p.Resource.Subresources = slices.DeleteFunc(p.Resource.Subresources, func(s history.Subresource) bool {
			return slices.Contains(connecting, s.Name) || !slices.Contains(s.Verbs, "get")
		})
		for i := range p.Resource.Subresources {
			p.Resource.Subresources[i].Verbs = reads(p.Resource.Subresources[i].Verbs)
		}
		// One of which nothing can be read could only be written to.
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

func reads(verbs []string) []string {
	var out []string
	for _, v := range verbs {
		if slices.Contains(ReadVerbs, v) {
			out = append(out, v)
		}
	}
	return out
}
