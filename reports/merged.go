package reports

import (
	"maps"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// MergedDiscovery is what the servers' last merged discovery (/apis, aggregated) listed: the last
// document of each server in the history. Resources are "group/version/resource", followed by
// "/subresource" for a subresource, sorted.
type MergedDiscovery struct {
	// Everywhere is what all servers listed. Partly is what some of them listed and others did not.
	Everywhere []string `json:"everywhere,omitempty"`
	Partly     []string `json:"partly,omitempty"`
}

func newMergedDiscovery(h *history.History) *MergedDiscovery {
	last := map[string]history.Operation{} // by server
	for _, o := range h.Operations {
		_, read := h.Documents[o.Document]
		if o.Verb != history.VerbDiscovery || o.Path != "/apis" || !read {
			continue
		}
		if before, ok := last[o.Server]; !ok || o.End > before.End {
			last[o.Server] = o
		}
	}
	if len(last) == 0 {
		return nil
	}
	servers := map[string]int{} // how many servers list it
	for _, o := range last {
		for name := range listed(h.Documents[o.Document]) {
			servers[name]++
		}
	}
	m := &MergedDiscovery{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if servers[name] == len(last) {
			m.Everywhere = append(m.Everywhere, name)
		} else {
			m.Partly = append(m.Partly, name)
		}
	}
	return m
}

// listed are the resources and subresources of a document.
func listed(d history.Document) map[string]bool {
	all := map[string]bool{}
	for _, r := range d.Resources {
		name := r.Group + "/" + r.Version + "/" + r.Resource
		all[name] = true
		for _, s := range r.Subresources {
			all[name+"/"+s.Name] = true
		}
	}
	return all
}
