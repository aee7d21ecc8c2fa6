// Package answer parses the answers of servers. It parses discovery documents in all their forms,
// and says whether a body is whole, which kind it has, and what a 404 denies. It has no side
// effects.
package answer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

// aggregatedList is the part of apidiscovery.k8s.io/v2 APIGroupDiscoveryList that invariants
// compare. Decoding into the real type would take several times as long.
type aggregatedList struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Items      []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Resources []struct {
				Resource     string        `json:"resource"`
				ResponseKind *responseKind `json:"responseKind"`
				Scope        string        `json:"scope"`
				Verbs        []string      `json:"verbs"`
				Subresources []struct {
					Subresource  string        `json:"subresource"`
					ResponseKind *responseKind `json:"responseKind"`
					Verbs        []string      `json:"verbs"`
				} `json:"subresources"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

type responseKind struct {
	Kind string `json:"kind"`
}

func (k *responseKind) String() string {
	if k == nil {
		return "" // a resource that exists only as the parent of subresources has no kind
	}
	return k.Kind
}

// ParseDiscovery parses an aggregated discovery document (apidiscovery.k8s.io/v2, JSON). Resources
// keep the order of the document; the hash is the hash of the exact bytes.
func ParseDiscovery(body []byte) (history.Document, error) {
	var list aggregatedList
	if err := json.Unmarshal(body, &list); err != nil {
		return history.Document{}, fmt.Errorf("parse aggregated discovery: %w", err)
	}
	if list.Kind != "APIGroupDiscoveryList" || list.APIVersion != "apidiscovery.k8s.io/v2" {
		return history.Document{}, fmt.Errorf(
			"parse aggregated discovery: got kind %q of %q, want APIGroupDiscoveryList of apidiscovery.k8s.io/v2", list.Kind, list.APIVersion)
	}
	doc := history.Document{Hash: Hash(body), Bytes: len(body)}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				resource := history.Resource{
					GVR:        history.GVR{Group: group.Metadata.Name, Version: version.Version, Resource: r.Resource},
					Kind:       r.ResponseKind.String(),
					Namespaced: r.Scope == "Namespaced",
					Verbs:      r.Verbs,
				}
				for _, s := range r.Subresources {
					resource.Subresources = append(resource.Subresources,
						history.Subresource{Name: s.Subresource, Kind: s.ResponseKind.String(), Verbs: s.Verbs})
				}
				doc.Resources = append(doc.Resources, resource)
			}
		}
	}
	return doc, nil
}

// ParseRoots makes one document from the bodies of /api and /apis, in that order. Its hash is the
// hash of both bodies together.
func ParseRoots(api, apis []byte) (history.Document, error) {
	core, err := ParseDiscovery(api)
	if err != nil {
		return history.Document{}, fmt.Errorf("discovery at /api: %w", err)
	}
	groups, err := ParseDiscovery(apis)
	if err != nil {
		return history.Document{}, fmt.Errorf("discovery at /apis: %w", err)
	}
	both := slices.Concat(api, apis)
	return history.Document{
		Hash: Hash(both), Bytes: len(both), Resources: slices.Concat(core.Resources, groups.Resources),
	}, nil
}

// Hash returns the hash of a document's bytes, which identifies the document.
func Hash(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// groupVersions makes a document of the group versions in a body: resources without a name, sorted.
func groupVersions(body []byte, versions []history.GVR) history.Document {
	doc := history.Document{Hash: Hash(body), Bytes: len(body)}
	slices.SortFunc(versions, func(a, b history.GVR) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	for _, v := range versions {
		doc.Resources = append(doc.Resources, history.Resource{GVR: v})
	}
	return doc
}
