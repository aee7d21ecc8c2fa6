package recorded

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/skewproof/skewproof/internal/history"
)

// list is an aggregated discovery document (apidiscovery.k8s.io/v2, APIGroupDiscoveryList). It is
// parsed down to its resources, which keep their bytes. Its fields are in the order in which a
// server writes them.
type list struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Metadata   json.RawMessage `json:"metadata"`
	Items      []group         `json:"items"`
}

type group struct {
	Metadata json.RawMessage `json:"metadata"`
	Versions []groupVersion  `json:"versions,omitempty"`
}

type groupVersion struct {
	Version   string            `json:"version"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Freshness string            `json:"freshness,omitempty"`
}

// cut returns a document that lists only the resources for which keep is true, with their
// subresources. Everything else is the same to the byte. A document encoded from Go's types would
// lose fields that only old servers write (creationTimestamp: null, up to 1.33). Like a server, cut
// leaves out versions and groups without resources.
func cut(body []byte, keep func(history.GVR) bool) ([]byte, error) {
	var all list
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("cut a discovery document: %w", err)
	}
	groups := []group{} // "items" is a list even when it is empty
	for _, g := range all.Items {
		var of struct{ Name string }
		if err := json.Unmarshal(g.Metadata, &of); err != nil {
			return nil, fmt.Errorf("cut a discovery document: metadata of a group: %w", err)
		}
		var versions []groupVersion
		for _, v := range g.Versions {
			var resources []json.RawMessage
			for _, raw := range v.Resources {
				var r struct{ Resource string }
				if err := json.Unmarshal(raw, &r); err != nil {
					return nil, fmt.Errorf("cut a discovery document: a resource of %s/%s: %w", of.Name, v.Version, err)
				}
				if keep(history.GVR{Group: of.Name, Version: v.Version, Resource: r.Resource}) {
					resources = append(resources, raw)
				}
			}
			if v.Resources = resources; len(resources) > 0 {
				versions = append(versions, v)
			}
		}
		if g.Versions = versions; len(versions) > 0 {
			groups = append(groups, g)
		}
	}
	all.Items = groups
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(all); err != nil {
		return nil, fmt.Errorf("cut a discovery document: %w", err)
	}
	return out.Bytes(), nil
}

// maxCuts is the maximum number of small versions that are kept of one version. A campaign uses a
// few. A search that draws resources at random must not fill the memory with them.
const maxCuts = 256

// cuts caches the small versions of one version, by the positions of their resources in its
// document. The zero value is empty.
type cuts struct {
	mu   sync.Mutex
	made map[string]*Version
}

// Small returns the release cut down to the given resources. A small document saves time wherever
// the cost depends on its length. The small release has the same name, and its resources have the
// same order. Resources are identified by group, version and resource, and keep all their
// subresources. Small ignores resources that the release does not serve. If no resource is left,
// both roots are empty lists.
//
// The results are cached by their set of resources. After 256 different sets the cache starts
// again, so the same call may then return another, equal Version. Cutting a whole release takes
// about a millisecond; a caller that needs many small versions cuts them from one that is already
// small. Safe for concurrent use. Small panics if v is not from this package.
func (v *Version) Small(resources []history.GVR) *Version {
	var key []byte
	for i := range v.Document.Resources {
		if slices.Contains(resources, v.Document.Resources[i].GVR) {
			key = binary.AppendUvarint(key, uint64(i))
		}
	}
	v.cuts.mu.Lock()
	defer v.cuts.mu.Unlock()
	small, ok := v.cuts.made[string(key)]
	if !ok {
		var err error
		if small, err = v.only(v.Name, func(gvr history.GVR) bool { return slices.Contains(resources, gvr) }); err != nil {
			panic(fmt.Sprintf("recorded: %s: %v", v.Name, err)) // cannot happen: parse has read the same bytes
		}
		small.GroupVersions = v.GroupVersions
		if v.cuts.made == nil || len(v.cuts.made) >= maxCuts {
			v.cuts.made = map[string]*Version{}
		}
		v.cuts.made[string(key)] = small
	}
	return small
}
