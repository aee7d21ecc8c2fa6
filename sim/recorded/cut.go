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

// list is an aggregated discovery document (apidiscovery.k8s.io/v2, APIGroupDiscoveryList) down to
// its resources, which stay the bytes they are. The order of the fields is that in which a server
// writes them.
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

// cut returns a document that lists the resources for which keep is true, with their subresources,
// and is otherwise the same to the byte: a document made anew from Go's types would lose what only
// old servers write (creationTimestamp: null, up to 1.33). Versions and groups of which nothing is
// left are left out, as by a server.
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

// maxCuts is how many small versions are kept of one version. A campaign uses a handful; a search
// that draws resources at random must not fill the memory with them.
const maxCuts = 256

// cuts are the small versions made of one version, by the positions of their resources in its
// document. The zero value is empty.
type cuts struct {
	mu   sync.Mutex
	made map[string]*Version
}

// Small returns the release cut down to the given resources, so that what costs time by the length
// of a document costs little. It has the same name and the same order. Resources are told by group,
// version and resource, and keep all their subresources. What the release does not serve is left
// out; with nothing left, both roots are empty lists.
//
// It is cached by the resources that are left, in whatever order they are given. After 256
// different sets the cache starts anew, so that the same question may give another, equal Version.
// To make one of a whole release takes about a millisecond; who needs many cuts them from one that
// is small already. Safe for concurrent use. It panics if v is not from this package.
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
			panic(fmt.Sprintf("recorded: %s: %v", v.Name, err)) // parse has read the same bytes
		}
		if v.cuts.made == nil || len(v.cuts.made) >= maxCuts {
			v.cuts.made = map[string]*Version{}
		}
		v.cuts.made[string(key)] = small
	}
	return small
}
