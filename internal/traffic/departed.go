package traffic

import (
	"maps"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// Classifier classifies as [Classify] does and remembers. What was served once and is not any more it adds to what nobody serves: servers
// and clients that do not forget it are wrong in another way than with what never existed. The zero Classifier has seen nothing. It is
// not safe for concurrent use.
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

// departed is what was served once and is not now: whole resources, and subresources of those that still are.
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
