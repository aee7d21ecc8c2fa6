package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
)

// Parts of the Accept header that ask for aggregated discovery. KEP-3352 (aggregated discovery), KEP-4020 (nopeer).
const (
	asDiscovery      = "as=APIGroupDiscoveryList"
	profileNoPeer    = "profile=nopeer"
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;" + asDiscovery
	acceptNoPeer     = acceptAggregated + ";" + profileNoPeer
)

// aggregatedList is as much of apidiscovery.k8s.io/v2 APIGroupDiscoveryList as invariants compare. Decoding into the
// real type would cost several times as much for what is then thrown away.
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
		return "" // a resource that exists only as the parent of subresources has none
	}
	return k.Kind
}

// ParseDiscovery reads an aggregated discovery document (apidiscovery.k8s.io/v2, JSON). Resources keep the order of the
// document; the hash is that of the exact bytes. Anything else than such a document is an error.
func ParseDiscovery(body []byte) (history.Document, error) {
	var list aggregatedList
	if err := json.Unmarshal(body, &list); err != nil {
		return history.Document{}, fmt.Errorf("parse aggregated discovery: %w", err)
	}
	if list.Kind != "APIGroupDiscoveryList" || list.APIVersion != "apidiscovery.k8s.io/v2" {
		return history.Document{}, fmt.Errorf(
			"parse aggregated discovery: got kind %q of %q, want APIGroupDiscoveryList of apidiscovery.k8s.io/v2", list.Kind, list.APIVersion)
	}
	doc := history.Document{Hash: hashOf(body), Bytes: len(body)}
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

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}
