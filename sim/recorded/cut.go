package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
)

// list is an aggregated discovery document (apidiscovery.k8s.io/v2, APIGroupDiscoveryList) down to its resources, which stay the bytes
// they are. The order of the fields is that in which a server writes them.
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

// cut returns a document that lists the resources for which keep is true, with their subresources, and is otherwise the same to the
// byte: a document made anew from Go's types would lose what only old servers write (creationTimestamp: null, up to 1.33). Versions and
// groups of which nothing is left are left out, as by a server.
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
